# The agent of the demo's fleet: what it does in one iteration of a task, in place of a model.
# Usage: sh agent.sh SHARED TASK, in the working tree of the task. The agents meet in the folder SHARED.
shared=$1
task=$2

# Waits until the agent of another task has begun as well, for a minute at most: then they do not meet.
meet() {
  : > "$shared/$task.began"
  waited=0
  until [ -e "$shared/$1.began" ] || [ "$waited" -ge 60 ]; do
    sleep 1
    waited=$((waited + 1))
  done
}

# The service of the model limits the account for 4 seconds from the first time that it is asked.
ask_the_service() {
  now=$(date +%s)
  if [ ! -e "$shared/limited-until" ]; then
    echo $((now + 4)) > "$shared/$task.limit"
    mv "$shared/$task.limit" "$shared/limited-until"
  fi
  left=$(($(cat "$shared/limited-until") - now))
  if [ "$left" -gt 0 ]; then
    echo "429 rate limit reached, try again in ${left}s" >&2
    exit 1
  fi
}

rename_sum() {
  renamed=$(sed 's/sum/total/g' "$1")
  printf '%s\n' "$renamed" > "$1"
}

case $task in
  smallest) meet count ;;
  count) meet smallest ;;
  total) meet average ;;
  average) meet total ;;
  *) ask_the_service ;;
esac

# After a landing was refused, the main branch is in the working tree.
if grep -q '^<<<<<<<' numbers.sh; then
  both=$(grep -v -e '^<<<<<<<' -e '^=======' -e '^>>>>>>>' numbers.sh)
  printf '%s\n' "$both" > numbers.sh
  echo "Both functions are kept."
elif [ -e average.sh ] && grep -q sum average.sh && ! grep -q sum numbers.sh; then
  rename_sum average.sh
  echo "average.sh uses the new name."
else
  case $task in
    smallest)
      printf '\n%s\n' 'smallest() { printf "%s\n" "$@" | sort -n | head -n 1; }' >> numbers.sh
      printf '%s\n' '. ./numbers.sh' '[ "$(smallest 4 2 9)" = 2 ]' > test-smallest.sh
      ;;
    count)
      printf '\n%s\n' 'count() { echo "$#"; }' >> numbers.sh
      printf '%s\n' '. ./numbers.sh' '[ "$(count 4 2 9)" = 3 ]' > test-count.sh
      ;;
    total) rename_sum numbers.sh ;;
    average)
      printf '%s\n' '. ./numbers.sh' '' 'average() { all=$(sum "$@") && echo $((all / $#)); }' > average.sh
      printf '%s\n' '. ./average.sh' '[ "$(average 4 2 9)" = 5 ]' > test-average.sh
      ;;
    guide) echo 'Whole numbers in the shell: total, average, count, smallest and largest.' > GUIDE.md ;;
    changes) printf '%s\n' '- sum is now total.' '- New: average, count and smallest.' > CHANGES.md ;;
  esac
  echo "It is done, and its test passes."
fi
echo "<promise>COMPLETE</promise>"
