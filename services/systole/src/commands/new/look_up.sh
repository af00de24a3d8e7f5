#!/bin/sh
# Finds a person in people.csv; the name is the first argument.
exec awk -F, -v name="$1" '
  tolower($1) == tolower(name) {
    printf "{\"found\": true, \"name\": \"%s\", \"language\": \"%s\", \"city\": \"%s\"}\n", $1, $2, $3
    found = 1
    exit
  }
  END { if (!found) print "{\"found\": false}" }
' people.csv
