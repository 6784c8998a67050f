#!/bin/sh
# Downloads the embedded engine's library once, into the user's cache folder, where the server looks for it.
# Needs npm, and uses the registry that npm is configured for. Prints nothing if the library is already there.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n 's/^const Version = "\(.*\)"$/\1/p' "$root/clickhouse/embedded/config.go")
[ -n "$version" ] || { echo "fetch-engine: no version found in clickhouse/embedded/config.go" >&2; exit 1; }

# The integrity of the package, if pinned. npm itself verifies the download against the registry's.
integrity=
case "$(uname -s)-$(uname -m)" in
Linux-x86_64 | Linux-amd64)
	package=@chdb/lib-linux-x64-gnu
	integrity=XP97mMqnc5tZpKQywR8N7cLTsHNiTmHr30pC5mzo3jWmukjKn2IBa60c2B/gWUNcuFjOMjWoorQICCqBVj5wpw==
	;;
Linux-aarch64 | Linux-arm64) package=@chdb/lib-linux-arm64-gnu ;;
Darwin-x86_64) package=@chdb/lib-darwin-x64 ;;
Darwin-arm64) package=@chdb/lib-darwin-arm64 ;;
*)
	echo "fetch-engine: there is no engine for $(uname -s) on $(uname -m); set clickhouse to a ClickHouse server" >&2
	exit 1
	;;
esac

# The same folder as os.UserCacheDir in Go.
case "$(uname -s)" in
Darwin) cache=$HOME/Library/Caches ;;
*) cache=${XDG_CACHE_HOME:-$HOME/.cache} ;;
esac
folder=$cache/caddy-analytics/engine/$version
library=$folder/libchdb.so
[ ! -s "$library" ] || exit 0

command -v npm >/dev/null 2>&1 || { echo "fetch-engine: npm is needed to download the engine" >&2; exit 1; }
mkdir -p "$folder"
work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

echo "Downloading the engine $package@$version (178 MB, once) into $folder"
# Run npm outside of any project, so that no package.json applies.
(cd "$work" && npm pack --silent --ignore-scripts "$package@$version" >/dev/null) || {
	echo "fetch-engine: npm pack $package@$version failed" >&2
	exit 1
}
set -- "$work"/*.tgz
archive=$1
[ -s "$archive" ] || { echo "fetch-engine: npm pack wrote no archive" >&2; exit 1; }
if [ -n "$integrity" ]; then
	got=$(node -e 'const c = require("crypto").createHash("sha512")
require("fs").createReadStream(process.argv[1]).on("data", d => c.update(d)).on("end", () => console.log(c.digest("base64")))' "$archive")
	if [ "$got" != "$integrity" ]; then
		echo "fetch-engine: $package@$version has an unexpected checksum: sha512-$got" >&2
		exit 1
	fi
fi
tar -xzf "$archive" -C "$work"
for name in libchdb.so libchdb.dylib; do
	if [ -s "$work/package/$name" ]; then
		chmod 755 "$work/package/$name"
		mv -f "$work/package/$name" "$library" # a rename in the same folder is atomic
		exit 0
	fi
done
echo "fetch-engine: $package@$version contains no libchdb" >&2
exit 1
