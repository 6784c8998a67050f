#!/bin/sh
# Records the data folder that a released version writes, as a fixture for the tests of this folder:
#
#   tests/upgrades/record.sh BINARY NAME
#
# starts BINARY, a caddy of that version, in a new folder, fills it, and writes testdata/NAME.tar.gz and testdata/NAME.env, the keys.
set -eu
binary=$(realpath "$1") name=$2
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
admin=127.0.0.1:$((20000 + $$ % 10000)) site=http://127.0.0.1:$((30000 + $$ % 10000))
export XDG_DATA_HOME=$work/xdg XDG_CONFIG_HOME=$work/xdg

# serve [LINE] starts the server, with a line for its global block, and waits for it.
serve() {
	printf '{\n admin %s\n auto_https off\n persist_config off\n analytics {\n  data_dir %s\n  %s\n }\n}\n%s {\n analytics\n}\n' \
		"$admin" "$work/data" "${1-}" "$site" >"$work/Caddyfile"
	"$binary" run --config "$work/Caddyfile" --adapter caddyfile >>"$work/log" 2>&1 &
	pid=$!
	until curl -s -o "$work/out" "$site/api/projects/1/query/"; do
		kill -0 $pid || { cat "$work/log" >&2; exit 1; }
		sleep 0.1
	done
}

stop() { kill $pid; wait $pid || true; }

run() { "$binary" analytics "$@" --address "$admin"; }

# field NAME prints a text of the JSON object in the input.
field() { sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p'; }

# call PATH BODY posts to the API.
call() {
	curl -sf "$site/api/projects/1/$1" -H "Authorization: Bearer $key" -H 'Content-Type: application/json' -d "$2" >"$work/out" || {
		echo "$1 failed" >&2
		curl -s "$site/api/projects/1/$1" -H "Authorization: Bearer $key" -H 'Content-Type: application/json' -d "$2" >&2
		exit 1
	}
}

# capture ID sends an event of a person with that id, who identifies as the person "late".
capture() {
	curl -sf "$site/batch/" -H 'Content-Type: application/json' >"$work/out" -d '{"api_key":"'"$token"'","batch":[
		{"event":"captured","distinct_id":"'"$1"'","timestamp":"2026-01-05T00:00:00Z","properties":{"$set":{"city":"Ghent"}}}]}'
}

serve
run project create --name "Shop" >/dev/null
key=$(run key create --project 1 --scopes '*' --label operator | field key)
secret=$(run key create --project 1 --kind secret --scopes endpoint:read --label customer | field key)
revoked=$(run key create --project 1 --scopes '*' --label gone)
run key revoke --project 1 "$(echo "$revoked" | field id)" >/dev/null 2>&1 || run key revoke "$(echo "$revoked" | field id)" >/dev/null
run import --project 1 - >/dev/null <<-'LINES'
	{"type":"person","distinct_ids":["ann","ann-phone"],"properties":{"email":"ann@example.com","visits":3},"created_at":"2025-12-01T00:00:00Z"}
	{"type":"group","group_type":"organization","group_type_index":0,"group_key":"org:5","properties":{"industry":"finance"}}
	{"event":"view","distinct_id":"ann","timestamp":"2026-01-01T10:00:00Z","uuid":"01900000-0000-7000-8000-000000000001","properties":{"plan":"pro","price":1.5,"$session_id":"s1"}}
	{"event":"view","distinct_id":"ann-phone","timestamp":"2026-01-02T10:00:00Z","uuid":"01900000-0000-7000-8000-000000000002","properties":{"plan":"free","$groups":{"organization":"org:5"}}}
	{"event":"buy","distinct_id":"bob","timestamp":"2025-12-31T23:59:59Z","uuid":"01900000-0000-7000-8000-000000000003","properties":{"plan":"pro","price":40,"paid":true,"$set":{"email":"bob@example.com"}}}
	{"event":"buy","distinct_id":"bob","timestamp":"2026-01-03T08:00:00Z","uuid":"01900000-0000-7000-8000-000000000004","properties":{"price":2.5,"note":"naïve ☕"}}
LINES
call insight_variables/ '{"name":"Plan","type":"String","default_value":"pro"}'
variable=$(field id <"$work/out")
call endpoints/ '{"name":"by_plan","query":{"kind":"HogQLQuery","query":"select count() from events where properties.plan = {variables.plan}","variables":{"'"$variable"'":{"variableId":"'"$variable"'","code_name":"plan"}}}}'
token=
if run project token show --project 1 >"$work/token" 2>/dev/null || run project token show 1 >"$work/token" 2>/dev/null; then
	token=$(field api_token <"$work/token")
	[ -n "$token" ] || token=$(sed -n 's/.*"\(phc_[^"]*\)".*/\1/p' "$work/token")
	capture carl
	sleep 3 # it is delivered within the second
	stop
	serve 'clickhouse http://127.0.0.1:1' # what is captured now waits in the log
	capture dora
fi
stop
printf 'key=%s\nsecret=%s\nrevoked=%s\ntoken=%s\n' "$key" "$secret" "$(echo "$revoked" | field key)" "$token" >"$here/testdata/$name.env"
tar -C "$work/data" --exclude='*.lock' --exclude=lock --sort=name --owner=0 --group=0 -cf - . | gzip -9n >"$here/testdata/$name.tar.gz"
ls -l "$here/testdata/$name.tar.gz"
