#!/bin/sh
# Installs the crew binary of a release, without Rust and without root: it downloads the archive for this machine, compares
# its checksum, tries the binary and puts it into ~/.local/bin. Nothing runs before the last line has arrived.
set -eu

version=0.1.0
repository=https://github.com/crew-loop/crew

usage() {
    cat <<END
Installs crew $version into ~/.local/bin.

usage: sh install.sh [--version X.Y.Z] [--dir FOLDER] [--from URL]

  --version X.Y.Z   another version than $version
  --dir FOLDER      where the binary goes (default: ~/.local/bin)
  --from URL        where archive and checksum are (default: the release's files; also CREW_DOWNLOAD_URL)
END
}

# fail WHAT HINT [STATUS]
fail() {
    printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
    exit "${3-1}"
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# The platform that a release names its archive after.
platform() {
    system=$(uname -s) machine=$(uname -m)
    # An Intel shell on a Mac with Apple's processor.
    if [ "$system" = Darwin ] && [ "$(sysctl -n sysctl.proc_translated 2>/dev/null)" = 1 ]; then machine=arm64; fi
    case $machine in
    amd64) machine=x86_64 ;;
    arm64) machine=aarch64 ;;
    esac
    case $system-$machine in
    Linux-x86_64 | Linux-aarch64)
        case $(ldd --version 2>&1) in
        *musl*) system='Linux with musl' ;;
        *) platform=$machine-unknown-linux-gnu && return ;;
        esac
        ;;
    Darwin-x86_64 | Darwin-aarch64) platform=$machine-apple-darwin && return ;;
    esac
    fail "crew has no binary for $system on $machine" \
        "build it with Rust: cargo install --git $repository --locked"
}

# fetch URL FILE: a redirect may lead to https only.
fetch() {
    if has curl; then
        curl --fail --silent --show-error --location --proto "$protocol" --proto-redir =https --connect-timeout 30 --max-time 900 \
            --output "$2" "$1"
    else
        LC_ALL=C wget -S -T 60 -O "$2" "$1" >"$2.log" 2>&1 || { tail -n 2 "$2.log" >&2 && false; }
    fi || fail "cannot download $1" \
        "look whether this file is there and can be reached from here; --version X.Y.Z names another release"
    # wget follows any redirect, and BusyBox's may trust any certificate; the log says so.
    if ! has curl && grep -Eqi '^ *(location|adding url): *http:|certificate validation not implemented' "$2.log"; then
        fail "wget left https, or did not check the certificate, for $1; nothing was installed" "install curl, and try again"
    fi
}

sum() {
    if has sha256sum; then
        sha256sum
    elif has shasum; then
        shasum -a 256
    else
        openssl dgst -sha256 -r
    fi
}

# The checksum that a line begins with; nothing where it does not begin with 64 hexadecimal digits.
checksum() {
    sed -n '1s/^\([0-9a-f]\{64\}\) .*/\1/p'
}

# Removes the temporary folder, and a binary that did not reach its place.
clean_up() {
    if [ -n "$temporary" ]; then rm -rf "$temporary"; fi
    if [ -n "$half" ]; then rm -f "$half"; fi
}

install_crew() {
    name=crew-$version-$platform
    archive=$temporary/$name.tar.gz
    echo "downloading $from/$name.tar.gz"
    fetch "$from/$name.tar.gz.sha256" "$archive.sha256"
    fetch "$from/$name.tar.gz" "$archive"
    expected=$(checksum <"$archive.sha256")
    if [ -z "$expected" ]; then
        fail "$from/$name.tar.gz.sha256 has no SHA-256; nothing was installed" "open this address to see what the server sends"
    fi
    actual=$(sum <"$archive" | checksum)
    if [ -z "$actual" ]; then
        fail "cannot compute the SHA-256 of $name.tar.gz; nothing was installed" \
            "repair the first of sha256sum, shasum and openssl that is on PATH: the download must be checked"
    fi
    if [ "$actual" != "$expected" ]; then
        fail "the SHA-256 of $name.tar.gz is $actual, but the published one is $expected; nothing was installed" \
            "try again; if it happens twice, report it: the archive is not the one that was released"
    fi
    echo "its SHA-256 is the published one: $actual"
    tar -C "$temporary" -xzf "$archive" || fail "cannot unpack $name.tar.gz into $temporary; nothing was installed" \
        "this needs tar, gzip and room there; TMPDIR names another folder"
    new=$temporary/$name/crew
    reported=$("$new" --version 2>&1) || fail "this crew does not run here: $reported" \
        "build it with Rust: cargo install --git $repository --locked"
    cannot="cannot write into $dir"
    elsewhere="name a folder of yours: --dir FOLDER"
    mkdir -p "$dir" || fail "$cannot" "$elsewhere"
    if [ -d "$dir/crew" ]; then fail "$dir/crew is a folder" "$elsewhere"; fi
    half=$dir/.crew-$$
    { cp "$new" "$half" && chmod 755 "$half" && mv -f "$half" "$dir/crew"; } || fail "$cannot" "$elsewhere"
    half=''
    echo "$reported is installed: $dir/crew"
}

say_what_is_next() {
    case ":$PATH:" in
    *":$dir:"*) ;;
    *)
        # The shell that reads the profile replaces $PATH, not this one.
        # shellcheck disable=SC2016
        printf '%s is not on your PATH; add to the profile of your shell: export PATH="%s:$PATH"\n' "$dir" "$dir"
        ;;
    esac
    first=$(command -v crew || true)
    if [ -n "$first" ] && [ "$first" != "$dir/crew" ]; then echo "another crew comes first on your PATH: $first"; fi
    echo "next: crew demo (shows a loop), crew install (adds the plugin to Claude Code)"
}

main() {
    dir='' from=${CREW_DOWNLOAD_URL-} temporary='' half=''
    while [ $# -gt 0 ]; do
        case $1 in
        -h | --help) usage && exit ;;
        --version | --dir | --from)
            if [ -z "${2-}" ]; then fail "$1 needs a value" "sh install.sh --help" 2; fi
            case $1 in
            --version) version=${2#v} ;;
            --dir) dir=$2 ;;
            --from) from=$2 ;;
            esac
            shift 2
            ;;
        *) fail "unknown option: $1" "sh install.sh --help" 2 ;;
        esac
    done
    if [ -z "$dir" ]; then
        if [ -z "${HOME-}" ]; then fail "HOME is not set" "name a folder: --dir FOLDER" 2; fi
        dir=$HOME/.local/bin
    fi
    case $dir in
    /*) ;;
    *) dir=$(pwd)/$dir ;;
    esac
    from=${from:-$repository/releases/download/v$version}
    from=${from%/}
    case $from in
    https://*) protocol='=https' ;;
    # HOST would be what is behind the @.
    http://*@*) fail "$from is not an https address" "leave out the user name; http is for this machine alone" 2 ;;
    http://127.0.0.1[:/]* | http://localhost[:/]*) protocol='=http' ;;
    *) fail "$from is not an https address" "a checksum over http proves nothing; http is for this machine alone" 2 ;;
    esac
    platform
    if ! has curl && ! has wget; then
        fail "neither curl nor wget is on PATH" "install one of them, or use npm: npm install -g crew-loop"
    fi
    if ! has sha256sum && ! has shasum && ! has openssl; then
        fail "neither sha256sum nor shasum nor openssl is on PATH" "install one of them: the download must be checked"
    fi
    trap clean_up EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    temporary=$(mktemp -d) || fail "cannot make a temporary folder" "make the folder that TMPDIR names, or name another"
    install_crew
    say_what_is_next
}

main "$@"
