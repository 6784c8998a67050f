package browser_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// repository returns the path of a file in the repository.
func repository(t *testing.T, path ...string) string {
	t.Helper()
	folder, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(append([]string{folder}, path...)...)
}

// shop is a project whose customers are components, with the endpoint of the README and a secret key.
type shop struct {
	*harness.Client
	author string // the key that published the endpoint
}

func newShop(t *testing.T) shop {
	t.Helper()
	id, key := server.Project(t, "customers")
	var lines bytes.Buffer
	for _, c := range commits(t, "tsdb", "promql", "web") {
		lines.Write(append(c.line, '\n'))
	}
	server.MustCommand(t, nil, &lines, "import", "--project", strconv.FormatInt(id, 10), "-")
	secret := server.Key(t, id, "endpoint:read", "secret")
	newWorkshop(t, server, id, key, secret).run(t, blocks(t, "README.md", "A tour")[2]) // publishes
	return shop{server.Client(id, secret), key}
}

// terms are what a page's backend requests for a token.
type terms struct {
	Endpoints []string          `json:"endpoints"`
	Variables map[string]string `json:"variables"`
	Origins   []string          `json:"origins"`
	ExpiresIn int               `json:"expires_in"`
	Rate      string            `json:"rate,omitempty"`
}

// site serves the dashboard of a customer, like docs/examples/dashboard/server.mjs, on two origins: http://127.0.0.1 and http://localhost. Its tokens
// are for the first one.
type site struct {
	url    string
	tokens atomic.Int64 // number issued
	token  atomic.Value // the last one
}

// site serves it with a customer's tokens. life is the lifetime of the first token in seconds; the others outlive the test.
func (s shop) site(t *testing.T, customer string, life int, rate string) *site {
	t.Helper()
	out := new(site)
	files := http.FileServer(http.Dir(repository(t, "docs", "examples", "dashboard")))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/token" {
			files.ServeHTTP(w, r)
			return
		}
		seconds := life
		if out.tokens.Load() > 0 {
			seconds = 300
		}
		answer, err := s.Send(http.MethodPost, "endpoint_tokens/", terms{[]string{"activity"}, map[string]string{"team": customer}, []string{out.url}, seconds, rate})
		if err != nil || answer.Status != http.StatusCreated {
			http.Error(w, fmt.Sprintf("%v %s", err, answer.Raw), http.StatusBadGateway)
			return
		}
		out.tokens.Add(1)
		out.token.Store(answer.Body["token"])
		api := fmt.Sprintf("%s/api/projects/%d", server.URL, s.Project)
		_ = json.NewEncoder(w).Encode(map[string]any{"api": api, "customer": customer, "token": answer.Body["token"]}) // the page notices
	}))
	t.Cleanup(web.Close)
	out.url = web.URL
	return out
}

// TestDashboard opens the example of docs/dashboards.md with tokens of many kinds.
func TestDashboard(t *testing.T) {
	t.Parallel()
	openTab(t) // or skip
	s := newShop(t)
	for _, tt := range []struct {
		name string
		test func(*testing.T, shop)
	}{
		{"pages", testPages},
		{"two customers", testCustomers},
		{"another origin", testOrigin},
		{"a token that ran out", testExpiry},
		{"a key that was revoked", testRevoked},
		{"a rate", testRate},
		{"a rate for long", testLongWait},
		{"over HTTPS", testSecure},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.test(t, s)
		})
	}
}

// testPages pages through everything that a customer can see, and back.
func testPages(t *testing.T, s shop) {
	t.Helper()
	web := s.site(t, "tsdb", 300, "")
	p := openTab(t)
	p.open(t, web.url)
	all, recent := activity(t, "tsdb", "2012-01-01"), activity(t, "tsdb", "2025-01-01")
	p.shows(t, page("tsdb", all, 0))
	p.click(t, "#older")
	p.shows(t, page("tsdb", all, 1))
	p.click(t, "#older")
	p.shows(t, page("tsdb", all, 2))
	p.click(t, "#newer")
	p.shows(t, page("tsdb", all, 1))
	p.evaluate(t, `(() => {
		const send = fetch;
		window.fetch = async () => {
			window.fetch = send;
			return new Response('{"code": "cursor_expired", "detail": "Begin again."}', { status: 410 });
		};
		return "the next cursor is none";
	})()`)
	p.click(t, "#older")
	p.shows(t, page("tsdb", all, 0))
	p.choose(t, "2025-01-01")
	p.shows(t, page("tsdb", recent, 0))
	p.click(t, "#older")
	p.shows(t, page("tsdb", recent, 1))
	if web.tokens.Load() != 1 {
		t.Errorf("the page took %d tokens", web.tokens.Load())
	}
	p.keeps(t, s.Key, s.author)
}

// testCustomers tries to read another customer's rows from one customer's page.
func testCustomers(t *testing.T, s shop) {
	t.Helper()
	one, other := openTab(t), openTab(t)
	one.open(t, s.site(t, "tsdb", 300, "").url)
	other.open(t, s.site(t, "promql", 300, "").url)
	one.shows(t, page("tsdb", activity(t, "tsdb", "2012-01-01"), 0))
	other.shows(t, page("promql", activity(t, "promql", "2012-01-01"), 0))

	// send sends a request that the page's script could send, and returns what the script can read of the response.
	const send = `(async () => {
		const { api, token } = await (await fetch("token", { method: "POST" })).json();
		const send = async (path, body, key = token) => {
			const answer = await fetch(api + path, {
				method: "POST", headers: { Authorization: "Bearer " + key, "Content-Type": "application/json" }, body: JSON.stringify(body),
			});
			const text = await answer.text();
			return answer.status + " " + (answer.ok ? text : JSON.parse(text).detail);
		};
		const [head, claims, signature] = token.split(".");
		const forged = (change) => [head, btoa(JSON.stringify({ ...JSON.parse(atob(claims)), ...change })).replaceAll("=", ""), signature].join(".");
		return %s;
	})().catch((error) => error.name)`
	for _, tt := range []struct{ name, script, want string }{
		{"another value", `send("/endpoints/activity/run", { variables: { team: "promql" } })`, "403 Variable team: this key fixes its value."},
		{"no value", `send("/endpoints/activity/run", { variables: { team: null } })`, "403 Variable team: this key fixes its value."},
		{"as a file", `send("/endpoints/activity/run.csv", { variables: { team: "promql" } })`, "403 Variable team: this key fixes its value."},
		{"a changed token", `send("/endpoints/activity/run", {}, forged({ variables: { team: "promql" } }))`, "TypeError"},
		{"an unsigned token", `send("/endpoints/activity/run", {}, [btoa('{"alg":"none"}'), token.split(".")[1], ""].join("."))`, "TypeError"},
		{"a query", `send("/query/", { query: { kind: "HogQLQuery", query: "select count() from events" } })`, "TypeError"},
		{"another token", `send("/endpoint_tokens/", { endpoints: ["activity"], variables: { team: "promql" } })`, "TypeError"},
	} {
		if got := one.evaluate(t, fmt.Sprintf(send, tt.script)); got != tt.want {
			t.Errorf("%s: the page gets %q, want %q", tt.name, got, tt.want)
		}
	}
}

// testOrigin opens the page on an origin that its tokens are not valid for.
func testOrigin(t *testing.T, s shop) {
	t.Helper()
	web := s.site(t, "tsdb", 300, "")
	p := openTab(t)
	p.open(t, strings.Replace(web.url, "127.0.0.1", "localhost", 1))
	p.shows(t, view{Customer: "…", Rows: [][]string{}, Status: "The API can't be reached from this page.", Failed: true})
	p.ran(t, server.URL, 0, "POST 403 MissingAllowOriginHeader", "POST 403 MissingAllowOriginHeader") // with a new token too
}

// testExpiry lets a token expire between two pages.
func testExpiry(t *testing.T, s shop) {
	t.Helper()
	web := s.site(t, "tsdb", 10, "")
	p := openTab(t)
	p.open(t, web.url)
	all := activity(t, "tsdb", "2012-01-01")
	p.shows(t, page("tsdb", all, 0))
	runs, tokens := len(p.answers(server.URL)), web.tokens.Load()
	token, _ := web.token.Load().(string)
	holder := server.Client(s.Project, token)
	holder.Header = http.Header{"Origin": {web.url}}
	harness.Eventually(t, time.Minute, func() error {
		if answer := holder.Do(t, http.MethodPost, "endpoints/activity/run", "{}"); answer.Status != http.StatusUnauthorized {
			return fmt.Errorf("the token still works: %d", answer.Status)
		}
		return nil
	})
	p.click(t, "#older")
	p.shows(t, page("tsdb", all, 1))
	p.ran(t, server.URL, runs, "POST 401", "POST 200")
	if more := web.tokens.Load() - tokens; more != 1 {
		t.Errorf("the page took %d tokens more", more)
	}
}

// testRevoked revokes the key of the page's backend.
func testRevoked(t *testing.T, s shop) {
	t.Helper()
	var key struct{ ID, Key string }
	server.MustCommand(t, &key, nil, "key", "create", "--project", strconv.FormatInt(s.Project, 10), "--scopes", "endpoint:read", "--kind", "secret", "--label", "to revoke")
	p := openTab(t)
	p.open(t, shop{Client: server.Client(s.Project, key.Key)}.site(t, "tsdb", 300, "").url)
	first := page("tsdb", activity(t, "tsdb", "2012-01-01"), 0)
	p.shows(t, first)
	server.MustCommand(t, nil, nil, "key", "revoke", key.ID)
	p.click(t, "#older")
	first.Status, first.Failed = "You are not signed in, or the site has no access to the API.", true
	p.shows(t, first)
}

// testRate exceeds the requests per second of a token.
func testRate(t *testing.T, s shop) {
	t.Helper()
	p := openTab(t)
	p.open(t, s.site(t, "web", 300, "1/s").url)
	p.view(t)
	got := p.evaluate(t, `import("/analytics.js").then(async ({ Analytics }) => {
		const analytics = new Analytics("token");
		const run = (since) => analytics.run("activity", { variables: { since }, limit: 1 });
		const answers = await Promise.all(["2014-02-01", "2014-03-01", "2014-04-01"].map(run));
		return JSON.stringify(answers.map((answer) => answer.results[0].month));
	})`)
	newest := activity(t, "web", "2014-04-01")[0].start.Format(time.DateOnly)
	if want := fmt.Sprintf("[%[1]q,%[1]q,%[1]q]", newest); got != want {
		t.Errorf("the page got %s, want %s", got, want)
	}
	if answers := p.answers(server.URL); !slices.Contains(answers, "POST 429") {
		t.Errorf("no run had to wait: %q", answers)
	}
}

// testLongWait exceeds the requests per hour of a token.
func testLongWait(t *testing.T, s shop) {
	t.Helper()
	p := openTab(t)
	p.open(t, s.site(t, "web", 300, "1/h").url)
	p.view(t)
	var last view
	for _, since := range []string{"2018-01-01", "2022-01-01", "2025-01-01"} {
		p.choose(t, since)
		last = p.view(t)
	}
	var seconds int
	if _, err := fmt.Sscanf(last.Status, "Too many queries: try again in %d seconds.", &seconds); err != nil || !last.Failed || seconds < 3000 || seconds > 3600 {
		t.Errorf("the page shows %+v", last)
	}
}
