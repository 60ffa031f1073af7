#!/bin/sh
# install.sh VENV: what the system tests need. As root it installs Debian packages (Prometheus,
# Alertmanager, nspawn), makes a small Debian or Ubuntu tree to boot, and installs this project for
# that tree. As anybody else it changes nothing, and the tests say what they miss.
set -eu
venv=$1
packages="prometheus prometheus-alertmanager debootstrap systemd systemd-container iproute2 tcpdump"

if [ "$(id -u)" != 0 ]; then
    echo "not root: no packages are installed; tests skip where one is missing"
    exit 0
fi

missing=""
for package in $packages; do
    dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' ||
        missing="$missing $package"
done
if [ -n "$missing" ]; then
    echo "set-up: Debian packages:$missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends $missing >/dev/null
fi

# ---- the tree: once, again when what it holds changes -------------------------------------------

tree=build/systemd/tree
holds="systemd,systemd-sysv,python3,iproute2,procps"
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
if [ "$(cat "$tree.holds" 2>/dev/null)" != "$suite $holds" ]; then
    mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
        awk -v suite="$suite" '$1 == suite { print $2; exit }')
    echo "set-up: a $suite tree to boot"
    rm -rf "$tree" "$tree.holds"
    mkdir -p "$tree"
    debootstrap --variant=minbase --include="$holds" "$suite" "$tree" "$mirror" >build/systemd/debootstrap.log ||
        { tail -20 build/systemd/debootstrap.log >&2; exit 1; }
    rm -rf "$tree"/var/cache/apt/archives/*.deb
    mkdir -p "$tree/opt/acceld" "$tree/etc/acceld"
    for name in acceld accelctl; do ln -s "/opt/acceld/bin/$name" "$tree/usr/bin/$name"; done
    echo "$suite $holds" >"$tree.holds"
fi

# ---- the project as that tree's Python would have it -------------------------------------------

version=$(cd "$tree/usr/bin" && readlink python3 | sed 's/^python//')
opt=build/systemd/opt
site=$opt/lib/python$version/site-packages
rm -rf build/systemd/wheel
"$venv/bin/python" -m pip wheel -qq --no-deps --wheel-dir build/systemd/wheel .
key="$version $(sha256sum <pyproject.toml)"
if [ "$(cat build/systemd/opt.holds 2>/dev/null)" != "$key" ]; then
    rm -rf "$opt"
    mkdir -p "$opt/bin" "$site"
    ln -s /usr/bin/python3 "$opt/bin/python"
    printf 'home = /usr/bin\ninclude-system-site-packages = false\n' >"$opt/pyvenv.cfg"
    for name in acceld accelctl; do
        printf '#!/opt/acceld/bin/python\nimport sys\nfrom %s.main import main\nsys.exit(main())\n' \
            "$name" >"$opt/bin/$name"
        chmod +x "$opt/bin/$name"
    done
    "$venv/bin/python" -m pip install -qq --target "$site" --python-version "$version" \
        --only-binary :all: build/systemd/wheel/acceld-*.whl
    echo "$key" >build/systemd/opt.holds
fi
rm -rf "$site"/bin "$site"/acceld "$site"/accelhw "$site"/accel "$site"/accelctl "$site"/acceld-*.dist-info
"$venv/bin/python" -m pip install -qq --target "$site" --python-version "$version" \
    --only-binary :all: --no-deps build/systemd/wheel/acceld-*.whl
