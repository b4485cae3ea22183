# Functions for words, to be sourced: . ./words.sh

upper() { :; }
backwards() { :; }
vowels() { :; }
is_palindrome() { :; }
longest() { :; }
initials() { :; }
