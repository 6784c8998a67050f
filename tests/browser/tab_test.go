package browser_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// browser is the browser of all tabs, with the function that closes it.
var browser struct {
	once   sync.Once
	ctx    context.Context
	cancel context.CancelFunc
	err    error
}

// tab is a page in the browser, with everything that it sends and receives.
type tab struct {
	ctx context.Context // how chromedp identifies a tab

	mu       sync.Mutex
	requests []*request
}

// request is a request that the browser sent for a page.
type request struct {
	id                network.RequestID
	method, url       string
	headers, body     string
	status            int64 // 0 if there was no response
	protocol, refusal string
}

// openTab opens a tab. It skips the test on machines without Chromium, except in CI.
func openTab(t *testing.T) *tab {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("CI needs the package chromium")
		}
		t.Skip("there is no Chromium")
	}
	browser.once.Do(func() { browser.err = startBrowser(path) })
	if browser.err != nil {
		t.Fatalf("starting %s: %v", path, browser.err)
	}
	ctx, cancel := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &tab{ctx: ctx}
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[int]("1")); err != nil {
		t.Fatalf("opening a tab: %v", err)
	}
	if err := chromedp.Listen(ctx, p.record); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	return p
}

// startBrowser starts a headless Chromium that accepts certificates of the server's authority, and uses HTTP/3 for its API.
func startBrowser(path string) error {
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.WSURLReadTimeout(2*time.Minute),
		chromedp.Flag("ignore-certificate-errors-spki-list", secure.issuer), chromedp.Flag("origin-to-force-quic-on", secure.api))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancelAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancelBrowser := chromedp.NewContext(ctx)
	browser.ctx, browser.cancel = ctx, func() {
		cancelBrowser()
		cancelAllocator()
	}
	_, err := chromedp.Run(ctx, chromedp.Evaluate[int]("1"))
	return err
}

// closeBrowser closes the browser, if it was started.
func closeBrowser() {
	if browser.cancel != nil {
		browser.cancel()
	}
}

// record records what the page sends and receives. The browser reports network traffic separately from what the page sees of it, and may report it
// first.
func (p *tab) record(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		r := p.request(e.RequestID)
		r.method, r.url = e.Request.Method, e.Request.URL
		for _, part := range e.Request.PostDataEntries {
			r.body += string(part.Bytes)
		}
	case *network.EventRequestWillBeSentExtraInfo:
		p.request(e.RequestID).headers = fmt.Sprint(e.Headers)
	case *network.EventResponseReceived:
		r := p.request(e.RequestID)
		r.status, r.protocol = e.Response.Status, e.Response.Protocol
	case *network.EventResponseReceivedExtraInfo:
		p.request(e.RequestID).status = e.StatusCode
	case *network.EventLoadingFailed:
		r := p.request(e.RequestID)
		if r.refusal = e.ErrorText; e.CorsErrorStatus != nil {
			r.refusal = string(e.CorsErrorStatus.CorsError)
		}
	}
}

// request returns the request with an id. The caller holds the lock.
func (p *tab) request(id network.RequestID) *request {
	for _, r := range p.requests {
		if r.id == id {
			return r
		}
	}
	r := &request{id: id}
	p.requests = append(p.requests, r)
	return r
}

// sent returns the page's requests so far, in order. It leaves out requests that only the network has reported yet: they have neither a method nor
// an address.
func (p *tab) sent() []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]request, 0, len(p.requests))
	for _, r := range p.requests {
		if r.url != "" {
			out = append(out, *r)
		}
	}
	return out
}

// answers returns the page's requests to addresses that contain a text, in order and in the form "POST 200".
func (p *tab) answers(part string) []string {
	var out []string
	for _, r := range p.sent() {
		if strings.Contains(r.url, part) && r.method != http.MethodOptions {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %d %s", r.method, r.status, r.refusal)))
		}
	}
	return out
}

// ran compares the answers to the page's runs on a site, except the first ones. The browser may report an answer after the page.
func (p *tab) ran(t *testing.T, site string, skip int, want ...string) {
	t.Helper()
	harness.Eventually(t, time.Minute, func() error {
		got := p.answers(site)
		if diff := cmp.Diff(want, got[min(skip, len(got)):]); diff != "" {
			return fmt.Errorf("runs (-want +got):\n%s", diff)
		}
		return nil
	})
}

// protocols returns the protocols of the answers from a site, in the order of the requests.
func (p *tab) protocols(site string) []string {
	var out []string
	for _, r := range p.sent() {
		if strings.HasPrefix(r.url, site) {
			out = append(out, r.protocol)
		}
	}
	return out
}

// view is what a dashboard shows.
type view struct {
	Customer, Status string
	Failed           bool // Status is a mistake
	Rows             [][]string
	Bars             int
	Older, Newer     bool // these buttons can be clicked
}

const look = `(() => {
	const find = (selector) => document.querySelector(selector);
	return {
		customer: find("#customer").textContent, status: find("#status").textContent, failed: find("#status").className === "error",
		rows: [...document.querySelectorAll("#rows tr")].map((row) => [...row.cells].map((cell) => cell.textContent)),
		bars: document.querySelectorAll("#chart rect").length, older: !find("#older").disabled, newer: !find("#newer").disabled,
	};
})()`

// open opens a dashboard.
func (p *tab) open(t *testing.T, url string) {
	t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.Navigate(url)); err != nil {
		t.Fatalf("opening %s: %v", url, err)
	}
}

// click clicks a button of the dashboard.
func (p *tab) click(t *testing.T, button string) {
	t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.Click(button)); err != nil {
		t.Fatalf("clicking on %s: %v", button, err)
	}
}

// choose selects a value in the dashboard's list of years.
func (p *tab) choose(t *testing.T, since string) {
	t.Helper()
	p.evaluate(t, fmt.Sprintf(`(() => {
		const list = document.querySelector("#since");
		list.value = %q;
		list.dispatchEvent(new Event("change"));
		return list.value;
	})()`, since))
}

// view waits until the dashboard is drawn, and returns what it shows.
func (p *tab) view(t *testing.T) view {
	t.Helper()
	drawn := chromedp.Poll[bool](`document.querySelector("#board").getAttribute("aria-busy") === "false"`,
		chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(2*time.Minute))
	if _, err := chromedp.Run(p.ctx, drawn); err != nil {
		t.Fatalf("the page does not get ready: %v; it asked %q", err, p.answers(""))
	}
	shown, err := chromedp.Run(p.ctx, chromedp.Evaluate[view](look))
	if err != nil {
		t.Fatal(err)
	}
	return shown
}

// shows waits until the dashboard is drawn, and compares what it shows.
func (p *tab) shows(t *testing.T, want view) {
	t.Helper()
	if diff := cmp.Diff(want, p.view(t)); diff != "" {
		t.Errorf("the page (-want +got):\n%s\nit asked %q", diff, p.answers(""))
	}
}

// evaluate runs a script in the page, as any user can, and returns the text of its result.
func (p *tab) evaluate(t *testing.T, script string) string {
	t.Helper()
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return text
}

// keeps checks that no secret is in the page, in its storage, or in anything that it sent or received, and that no token is in an address.
func (p *tab) keeps(t *testing.T, secrets ...string) {
	t.Helper()
	seen := map[string]string{"the page": p.evaluate(t, `JSON.stringify([
		location.href, document.documentElement.outerHTML, { ...localStorage }, { ...sessionStorage }, document.cookie,
	])`)}
	for _, r := range p.sent() {
		name := r.method + " " + r.url
		seen[name] += r.headers + r.body
		if strings.Contains(r.url, "eyJ") {
			t.Errorf("%s: a token stands in the address", name)
		}
		if r.method == http.MethodOptions || r.refusal != "" {
			continue
		}
		got, err := chromedp.Call(p.ctx, network.GetResponseBody, network.GetResponseBodyParams{RequestID: r.id})
		if err != nil {
			t.Errorf("%s: reading what came: %v", name, err)
		}
		seen[name] += string(got.Body)
	}
	for name, text := range seen {
		for _, secret := range secrets {
			if strings.Contains(name+text, secret) {
				t.Errorf("%s holds %s…", name, secret[:8])
			}
		}
	}
}
