#!/usr/bin/env bash
# Checks the formatting of C++ sources and the white space of other text files.
# `tools/lint.sh --fix` formats in place.
set -euo pipefail
cd "$(dirname "$0")/.."
clang_format=$(command -v clang-format-22 || echo /usr/lib/llvm-22/bin/clang-format)
mapfile -t sources < <(git ls-files '*.cpp' '*.h' '*.c')
if [ "${1:-}" = "--fix" ]; then
  "$clang_format" -i "${sources[@]}"
else
  "$clang_format" --dry-run --Werror "${sources[@]}"
fi
status=0
while IFS= read -r file; do
  if grep -nP '[ \t]+$' "$file" >/dev/null; then
    echo "error: trailing white space in $file" >&2
    status=1
  fi
done < <(git ls-files '*.md' '*.td' '*.txt' '*.cmake' '*.py' '*.sh' '*.json')
exit $status
