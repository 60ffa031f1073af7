#!/bin/sh
# in-namespace.sh COMMAND...: runs it in network and mount namespaces of its own, so that no
# interface of this host is touched; as a plain user in a user namespace too. Where the machine
# forbids that, it runs as it is, and tests that need interfaces say why they skip.
set -eu

inside='
mount -t tmpfs -o mode=755 tmpfs /run || exit 125
mkdir -p /run/netns /run/lock
ip link set lo up 2>/dev/null || true # the tests do it themselves where ip is missing
unset XDG_RUNTIME_DIR
export ACCEL_TEST_NAMESPACE=1
exec "$@"
'
if [ "$(id -u)" = 0 ]; then
    flags="--net --mount"
else
    flags="--user --map-root-user --net --mount"
fi
if unshare $flags true 2>/dev/null; then
    exec unshare $flags sh -c "$inside" sh "$@"
fi
echo "no network namespace can be made here (unshare $flags failed); tests that need one will skip" >&2
exec "$@"
