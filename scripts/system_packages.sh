#!/usr/bin/env bash
# Install the system packages named by "command=package" arguments whose command is missing.
# Uses apt-get as root or through sudo; otherwise prints the one line to type and fails.
set -euo pipefail

missing=()
for pair in "$@"; do
  command -v "${pair%%=*}" >/dev/null 2>&1 || missing+=("${pair#*=}")
done
# Debian and Ubuntu split the part of Python that makes virtual environments into a package of its own.
python3 -c 'import ensurepip' >/dev/null 2>&1 || missing+=(python3-venv)
[ "${#missing[@]}" -eq 0 ] && exit 0

packages=$(printf '%s\n' "${missing[@]}" | sort -u | tr '\n' ' ')
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if sudo -n true 2>/dev/null; then as_root=(sudo -n); else as_root=(none); fi
fi
if [ "${as_root[*]:-}" = none ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "missing system packages; install them with: sudo apt-get install -y ${packages% }" >&2
  exit 2
fi
echo "installing system packages: ${packages% }"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
# shellcheck disable=SC2086
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
