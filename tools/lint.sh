#!/usr/bin/env bash
# Checks sources: formats of C++ (clang-format) and Python (ruff), white space of other text
# files, faults and types of Python (ruff, mypy), the English of names and comments
# (check_english.py), and faults of C++ (clang-tidy) in files that differ.
#   tools/lint.sh                 from where the branch left main, or are not committed
#   tools/lint.sh --since COMMIT  from this commit
#   tools/lint.sh --all           clang-tidy takes every file: more than half an hour on two cores
#   tools/lint.sh --quick         leaves out clang-tidy, which needs a build
#   tools/lint.sh --fix           formats in place, and checks only white space
set -euo pipefail
cd "$(dirname "$0")/.."

fix='' all='' quick='' since=''
while (($#)); do
  case $1 in
  --fix) fix=1 ;;
  --all) all=1 ;;
  --quick) quick=1 ;;
  --since)
    since=$(git rev-parse --verify --quiet "${2:-}^{commit}") || {
      echo "error: option --since: expected a commit, but got '${2:-}'" >&2
      exit 2
    }
    shift
    ;;
  *)
    echo "error: expected --fix, --all, --quick or --since COMMIT, but got '$1'" >&2
    exit 2
    ;;
  esac
  shift
done
status=0

# Formats and white space.
clang_format=$(command -v clang-format-22 || echo /usr/lib/llvm-22/bin/clang-format)
mapfile -t sources < <(git ls-files '*.cpp' '*.h' '*.c')
if [ "$fix" ]; then
  "$clang_format" -i "${sources[@]}"
else
  "$clang_format" --dry-run --Werror "${sources[@]}" || status=1
fi

# Python: [tool.ruff] of pyproject.toml has the rules.
if [ ! -x .venv/bin/ruff ]; then
  echo "error: no .venv/bin/ruff; tools/setup.sh installs it" >&2
  status=1
elif [ "$fix" ]; then
  .venv/bin/ruff check --quiet --fix || status=1
  .venv/bin/ruff format --quiet || status=1
else
  .venv/bin/ruff format --quiet --check || status=1
  .venv/bin/ruff check --quiet || status=1
fi

while IFS= read -r file; do
  if grep -nP '[ \t]+$' "$file" >/dev/null; then
    echo "error: trailing white space in $file" >&2
    status=1
  fi
done < <(git ls-files '*.md' '*.td' '*.txt' '*.cmake' '*.py' '*.sh' '*.json')
if [ "$fix" ]; then
  exit $status
fi

# Types of Python: [tool.mypy] of pyproject.toml says of what.
if [ -x .venv/bin/mypy ]; then
  .venv/bin/mypy --no-error-summary || status=1
else
  echo "error: no .venv/bin/mypy; tools/setup.sh installs it" >&2
  status=1
fi

# English of names and comments in the folders of tools/english_rooms.txt.
tools/check_english.py || status=1
if [ "$quick" ]; then
  exit $status
fi

# Faults of C++: .clang-tidy lists them.
left_main() {
  local branch
  for branch in origin/main main; do
    if git rev-parse --verify --quiet "$branch^{commit}" >/dev/null; then
      git merge-base HEAD "$branch" && return
    fi
  done
  git rev-parse HEAD
}

# A source with a compile command that includes a header, which has none itself.
includer_of() {
  local name=$1 file
  case $name in
  include/*) name=${name#include/} ;;
  *) name=$(basename "$name") ;;
  esac
  while IFS= read -r file; do
    if [ "${has_command[$file]:-}" ]; then
      echo "$file"
      return
    fi
  done < <(
    git grep -lE "#include \"([^\"]*/)?${name//./\\.}\"" -- "$(dirname "$1")" || true
    git grep -lE "#include \"([^\"]*/)?${name//./\\.}\"" -- '*.cpp' '*.c' || true
  )
}

tidy() {
  local clang_tidy commands=build/release/compile_commands.json
  clang_tidy=$(command -v clang-tidy-22 || command -v /usr/lib/llvm-22/bin/clang-tidy) || {
    echo "clang-tidy: not run, since clang-tidy-22 is not installed; tools/setup.sh installs it"
    return
  }
  if [ ! -f $commands ]; then
    echo "clang-tidy: not run, since there is no $commands; tools/build.sh makes it"
    return
  fi
  local -A has_command=() chosen=()
  local file includer what
  while IFS= read -r file; do
    has_command[$file]=1
  done < <(sed -n "s|^ *\"file\": \"$PWD/\(.*\)\".*|\1|p" $commands)

  local -a changed=("${sources[@]}") left_out=()
  what="all files"
  if [ ! "$all" ]; then
    since=${since:-$(left_main)}
    what="files that differ from $(git rev-parse --short "$since")"
    mapfile -t changed < <(
      git diff --name-only --diff-filter=d "$since" -- '*.cpp' '*.h' '*.c'
      git ls-files --others --exclude-standard -- '*.cpp' '*.h' '*.c'
    )
  fi
  for file in "${changed[@]}"; do
    case $file in
    *.h) ;;
    *) if [ "${has_command[$file]:-}" ]; then chosen[$file]=1; else left_out+=("$file"); fi ;;
    esac
  done
  # Findings in a header are those of a source that includes it.
  for file in "${changed[@]}"; do
    if [ ! "$all" ] && [[ $file == *.h ]]; then
      includer=$(includer_of "$file")
      if [ "$includer" ]; then chosen[$includer]=1; else left_out+=("$file"); fi
    fi
  done
  if ((${#left_out[@]})); then
    echo "clang-tidy: not run on files that the build does not compile: ${left_out[*]}"
  fi
  echo "clang-tidy: sources for $what: ${#chosen[@]}"
  if ((${#chosen[@]})); then
    # A file's words stay together, and there are none where nothing was found.
    # shellcheck disable=SC2016
    printf '%s\0' "${!chosen[@]}" | sort -z | xargs -0 -P "$(nproc)" -n 1 bash -c '
      words=$("$0" --quiet -p build/release "$1" 2>&1) && exit
      printf "%s\n" "$words" | grep -vE "^[0-9]+ warnings?( treated as errors?)?( generated)?\.?$|Processing file" >&2
      exit 1' "$clang_tidy" || return 1
  fi
}
tidy || status=1
exit $status
