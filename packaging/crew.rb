# The formula for a Homebrew tap. `.ci/release formula` fills in the version, the address and the checksums.
class Crew < Formula
  desc "Keeps a coding agent working until the job is proved done"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/crew-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SUM_aarch64-apple-darwin@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/crew-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SUM_x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/crew-@VERSION@-aarch64-unknown-linux-gnu.tar.gz"
      sha256 "@SUM_aarch64-unknown-linux-gnu@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/crew-@VERSION@-x86_64-unknown-linux-gnu.tar.gz"
      sha256 "@SUM_x86_64-unknown-linux-gnu@"
    end
  end

  def install
    bin.install "crew"
    generate_completions_from_executable(bin/"crew", "completions", shells: [:bash, :zsh, :fish])
  end

  def caveats
    "crew install adds the plugin to Claude Code; crew demo shows a loop."
  end

  test do
    assert_equal "crew #{version}", shell_output("#{bin}/crew --version").strip
  end
end
