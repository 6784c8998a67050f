#!/bin/sh
# Fetches the embedded engine's library, once, into the user's cache folder, where the server looks for it.
# Needs npm, and takes the package from whatever registry npm is set up for. Quiet when the library is there.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n 's/^const Version = "\(.*\)"$/\1/p' "$root/clickhouse/embedded/config.go")
[ -n "$version" ] || { echo "fetch-engine: clickhouse/embedded/config.go names no version" >&2; exit 1; }

# The integrity of the package, where it is pinned. npm itself checks what it gets against its registry's.
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
	echo "fetch-engine: there is no engine for $(uname -s) on $(uname -m): point clickhouse at a server" >&2
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

command -v npm >/dev/null 2>&1 || { echo "fetch-engine: npm is needed to fetch the engine" >&2; exit 1; }
mkdir -p "$folder"
work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

echo "Fetching the engine $package@$version (178 MB, once) into $folder"
# Outside of any project, so that no package.json has a say.
(cd "$work" && npm pack --silent --ignore-scripts "$package@$version" >/dev/null) || {
	echo "fetch-engine: npm pack $package@$version failed" >&2
	exit 1
}
set -- "$work"/*.tgz
archive=$1
[ -s "$archive" ] || { echo "fetch-engine: npm pack left no archive" >&2; exit 1; }
if [ -n "$integrity" ]; then
	got=$(node -e 'const c = require("crypto").createHash("sha512")
require("fs").createReadStream(process.argv[1]).on("data", d => c.update(d)).on("end", () => console.log(c.digest("base64")))' "$archive")
	if [ "$got" != "$integrity" ]; then
		echo "fetch-engine: $package@$version is not the package that this version was made for: sha512-$got" >&2
		exit 1
	fi
fi
tar -xzf "$archive" -C "$work"
for name in libchdb.so libchdb.dylib; do
	if [ -s "$work/package/$name" ]; then
		chmod 755 "$work/package/$name"
		mv -f "$work/package/$name" "$library" # within one folder: it is there as a whole or not at all
		exit 0
	fi
done
echo "fetch-engine: $package@$version holds no libchdb" >&2
exit 1
