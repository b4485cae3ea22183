#!/bin/sh
# The tests of words.sh. They print TAP: sh test.sh
. ./words.sh
number=0
failed=0

check() { # NAME EXPECTED FOUND
    number=$((number + 1))
    if [ "$2" = "$3" ]; then
        echo "ok $number - $1"
    else
        failed=$((failed + 1))
        echo "not ok $number - $1"
        echo "# expected '$2', found '$3'"
    fi
}

echo 1..8
check "upper" "NIGHT SHIFT" "$(upper "night shift")"
check "backwards" "thgin" "$(backwards night)"
check "vowels" 3 "$(vowels "a long night")"
check "no vowels" 0 "$(vowels rhythm)"
check "a palindrome" yes "$(is_palindrome level && echo yes || echo no)"
check "no palindrome" no "$(is_palindrome night && echo yes || echo no)"
check "longest" "night" "$(longest "one night in may")"
check "initials" "n.s." "$(initials "night shift")"
[ "$failed" = 0 ]
