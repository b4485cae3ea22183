. ./numbers.sh
failed=0
expect() {
  if [ "$2" = "$3" ]; then
    echo "ok    $1"
  else
    echo "FAIL  $1: expected $2, got $3"
    failed=1
  fi
}
expect "sum of 1 2 3" 6 "$(sum 1 2 3)"
expect "largest of 4 9 2" 9 "$(largest 4 9 2)"
expect "largest of -5 -2 -8" -2 "$(largest -5 -2 -8)"
exit "$failed"
