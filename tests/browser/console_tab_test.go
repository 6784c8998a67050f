package browser_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// demo is the server of `make run`, started by the first test that needs it.
var demo struct {
	once   sync.Once
	folder string
	server *harness.Demo
	err    error
}

// demoServer is the demo, shared by the tests of the console. Tests that write make their own projects.
func demoServer(t *testing.T) *harness.Demo {
	t.Helper()
	demo.once.Do(func() {
		if demo.folder, demo.err = os.MkdirTemp("", "analytics-console-"); demo.err == nil {
			demo.server, demo.err = harness.OpenDemo(demo.folder)
		}
	})
	if demo.err != nil {
		t.Fatalf("starting the demo: %v", demo.err)
	}
	return demo.server
}

// closeDemo stops the demo, if it was started.
func closeDemo() error {
	if demo.server == nil {
		return nil
	}
	err := demo.server.Stop()
	if removed := os.RemoveAll(demo.folder); err == nil {
		err = removed
	}
	return err
}

// signInLink requests a link that signs in to a project. No scopes means all.
func signInLink(t *testing.T, s *harness.Server, project int64, scopes ...string) string {
	t.Helper()
	var out struct{ Link string }
	err := s.Ask("/analytics/console", map[string]any{"project": project, "site": s.URL, "scopes": scopes, "expires": "1h"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	return out.Link
}

// console is a tab with the console. At its end, it fails the test for every error in the tab's console, every violation of the page's policy
// and every request to another host.
type console struct {
	*tab

	server  *harness.Server
	project int64

	mu         sync.Mutex
	complaints []string
	expected   []string // parts of complaints to ignore
	received   map[network.RequestID]float64
}

// prelude runs in each page before the page's scripts.
const prelude = `addEventListener("securitypolicyviolation", (e) => console.error("policy: " + e.violatedDirective + " " + e.blockedURI));`

// openConsole opens an empty tab for the console of a project.
func openConsole(t *testing.T, s *harness.Server, project int64) *console {
	t.Helper()
	c := &console{tab: openTab(t), server: s, project: project, received: map[network.RequestID]float64{}}
	t.Cleanup(func() { c.check(t) })
	if err := chromedp.Listen(c.ctx, c.notice); err != nil {
		t.Fatal(err)
	}
	_, err := chromedp.Call(c.ctx, runtime.Enable, cdp.Empty{})
	if err == nil {
		_, err = chromedp.Call(c.ctx, cdplog.Enable, cdp.Empty{})
	}
	if err == nil {
		_, err = chromedp.Call(c.ctx, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: prelude})
	}
	if err != nil {
		t.Fatal(err)
	}
	c.look(t, light, wide)
	return c
}

// signedIn opens the console of a project, signed in with some scopes, or all.
func signedIn(t *testing.T, s *harness.Server, project int64, scopes ...string) *console {
	t.Helper()
	c := openConsole(t, s, project)
	c.signIn(t, scopes...)
	return c
}

// signIn opens a link.
func (c *console) signIn(t *testing.T, scopes ...string) {
	t.Helper()
	c.open(t, "about:blank") // otherwise only the fragment of the address changes
	c.visit(t, signInLink(t, c.server, c.project, scopes...))
	if c.kept(t) == "" {
		t.Fatalf("the tab is not signed in:\n%s", c.text(t, "body"))
	}
}

// How a page is viewed: the theme, and the width in pixels.
const (
	light, dark  = "light", "dark"
	wide, narrow = 1280, 360
)

// look sets the user's preferred theme and the width of the window. Motion is reduced, so that nothing moves during checks.
func (c *console) look(t *testing.T, theme string, width int64) {
	t.Helper()
	_, err := chromedp.Call(c.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(c.ctx, chromedp.EmulateViewport(width, 800)); err != nil {
		t.Fatal(err)
	}
}

// notice collects the tab's complaints.
func (c *console) notice(event any) {
	var complaint string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		complaint = "exception: " + e.ExceptionDetails.Text
		if thrown := e.ExceptionDetails.Exception; thrown != nil {
			complaint += " " + thrown.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.ConsoleAPICalledTypeError && e.Type != runtime.ConsoleAPICalledTypeWarning {
			return
		}
		complaint = fmt.Sprintf("console.%s:", e.Type)
		for _, arg := range e.Args {
			complaint += " " + string(arg.Value) + " " + arg.Description
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level != cdplog.EntryLevelError {
			return
		}
		complaint = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
	case *network.EventLoadingFinished:
		c.mu.Lock()
		c.received[e.RequestID] = e.EncodedDataLength
		c.mu.Unlock()
		return
	default:
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.complaints = append(c.complaints, complaint)
}

// expect adds part of a complaint that the test causes on purpose.
func (c *console) expect(part string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expected = append(c.expected, part)
}

// check fails the test for complaints and for requests to other hosts.
func (c *console) check(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
next:
	for _, complaint := range c.complaints {
		for _, part := range c.expected {
			if strings.Contains(complaint, part) {
				continue next
			}
		}
		t.Errorf("the tab complains: %s", complaint)
	}
	for _, r := range c.sent() {
		to, err := url.Parse(r.url)
		if err != nil || (to.Scheme == "http" || to.Scheme == "https") && to.Scheme+"://"+to.Host != c.server.URL {
			t.Errorf("the page asked another host: %s %s", r.method, r.url)
		}
	}
}

// visit opens an address, or a path of the project such as "insights", and waits until everything is loaded.
func (c *console) visit(t *testing.T, to string) {
	t.Helper()
	if !strings.Contains(to, "://") {
		to = fmt.Sprintf("%s/project/%d/%s", c.server.URL, c.project, to)
	}
	c.open(t, to)
	c.settle(t)
}

// settled waits until nothing has been loading for a while: a click's requests may start a little later.
const settled = `(async () => {
	const end = Date.now() + 60_000;
	let ready = 0; // times in a row, so that a page which does nothing for a while is not taken for one that has nothing to do
	while (Date.now() < end) {
		ready = document.documentElement?.dataset.ready === "true" ? ready + 1 : 0;
		if (ready > 10) return "";
		await new Promise((resolve) => setTimeout(resolve, 20));
	}
	return document.documentElement.outerHTML.slice(0, 2000);
})()`

// settle waits until nothing is loading.
func (c *console) settle(t *testing.T) {
	t.Helper()
	var stuck string
	var err error
	for range 3 { // a page that is left while it is asked does not answer
		if stuck, err = chromedp.Run(c.ctx, chromedp.Evaluate[string](settled, chromedp.EvalAwaitPromise)); err == nil {
			break
		}
	}
	if err != nil || stuck != "" {
		t.Fatalf("the page is not ready after a minute: %v; it asked %q\n%s", err, c.answers("/api/"), stuck)
	}
}

// text returns the visible text of the elements that match a selector.
func (c *console) text(t *testing.T, selector string) string {
	t.Helper()
	return c.evaluate(t, fmt.Sprintf(`[...document.querySelectorAll(%s)].map((e) => e.innerText).join("\n")`, quote(selector)))
}

// shows waits until the page shows a text.
func (c *console) shows(t *testing.T, part string) {
	t.Helper()
	harness.Eventually(t, time.Minute, func() error {
		if got := c.body(); !strings.Contains(got, part) {
			return fmt.Errorf("the page does not show %q but\n%s", part, got)
		}
		return nil
	})
}

// reads waits until the visible text of the elements that match a selector is a text. A text that moves to another place, such as an error's, is there
// only after the next frame.
func (c *console) reads(t *testing.T, selector, want string) {
	t.Helper()
	harness.Eventually(t, time.Minute, func() error {
		if got := c.text(t, selector); got != want {
			return fmt.Errorf("%s shows %q instead of %q", selector, got, want)
		}
		return nil
	})
}

// body returns all visible text, or why there is none: a page that is left while it is asked does not answer.
func (c *console) body() string {
	text, err := chromedp.Run(c.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return text
}

// quote returns a text as a JavaScript string.
func quote(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err) // a text is always valid
	}
	return string(raw)
}

// place is the middle of an element, in pixels of the window.
type place struct {
	X, Y    float64
	Visible bool
}

const whereIs = `function() {
	if (!this.checkVisibility?.({ checkVisibilityCSS: true, checkOpacity: true })) return { X: 0, Y: 0, Visible: false };
	this.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
	const box = this.getBoundingClientRect();
	return { X: box.x + box.width / 2, Y: box.y + box.height / 2, Visible: box.width > 0 && box.height > 0 };
}`

// find returns the places of the visible elements with a role and a name for screen readers.
func (c *console) find(t *testing.T, role, name string) (places []place) {
	t.Helper()
	harness.Eventually(t, time.Minute, func() (err error) {
		places, err = c.search(role, name)
		return err
	})
	return places
}

// search is find in the current page, which may be about to be left.
func (c *console) search(role, name string) (places []place, err error) {
	root, err := chromedp.Call(c.ctx, dom.GetDocument, dom.GetDocumentParams{})
	if err != nil {
		return nil, err
	}
	found, err := chromedp.Call(c.ctx, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{NodeID: root.Root.NodeID, Role: role, AccessibleName: name})
	if err != nil {
		return nil, fmt.Errorf("looking for the %s %q: %w", role, name, err)
	}
	for _, node := range found.Nodes {
		if node.Ignored {
			continue
		}
		object, err := chromedp.Call(c.ctx, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: node.BackendDOMNodeID})
		if err != nil {
			continue // it is gone
		}
		at, err := chromedp.Run(c.ctx, chromedp.CallFunctionOn[place](whereIs, func(p *runtime.CallFunctionOnParams) { p.ObjectID = object.Object.ObjectID }))
		if err == nil && at.Visible {
			places = append(places, at)
		}
	}
	return places, nil
}

// one waits until there is exactly one such element.
func (c *console) one(t *testing.T, role, name string) (at place) {
	t.Helper()
	harness.Eventually(t, time.Minute, func() error {
		places, err := c.search(role, name)
		if err != nil {
			return err
		}
		if len(places) != 1 {
			return fmt.Errorf("there are %d elements with the role %s and the name %q on\n%s", len(places), role, name, c.body())
		}
		at = places[0]
		return nil
	})
	return at
}

// press clicks the element with a role, such as button, link, tab, menuitem or option, and a name, and waits until everything is loaded.
func (c *console) press(t *testing.T, role, name string) {
	t.Helper()
	c.hit(t, role, name)
	c.settle(t)
}

// pressTells is press for an element after which the page shows a text for some seconds, perhaps not until everything is loaded.
func (c *console) pressTells(t *testing.T, role, name, text string) {
	t.Helper()
	c.hit(t, role, name)
	c.shows(t, text)
	c.settle(t)
}

// hit clicks an element once it stays where it is.
func (c *console) hit(t *testing.T, role, name string) {
	t.Helper()
	at := c.one(t, role, name)
	for range 10 {
		was := at
		if at = c.one(t, role, name); at == was {
			break
		}
	}
	if err := chromedp.Do(c.ctx, chromedp.MouseClickXY(at.X, at.Y)); err != nil {
		t.Fatalf("clicking on the %s %q: %v", role, name, err)
	}
}

// fill replaces the content of the field with a role (textbox, searchbox or combobox) and a name.
func (c *console) fill(t *testing.T, role, name, text string) {
	t.Helper()
	c.hit(t, role, name)
	c.evaluate(t, `document.activeElement.select?.(), ""`)
	if _, err := chromedp.Call(c.ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
		t.Fatalf("writing into %q: %v", name, err)
	}
	c.settle(t)
}

// pick selects a value in a list of choices, by its label.
func (c *console) pick(t *testing.T, label, value string) {
	t.Helper()
	c.evaluate(t, fmt.Sprintf(`(() => {
		const list = [...document.querySelectorAll("select")].find((e) => e.getAttribute("aria-label") === %[1]s || e.labels[0]?.innerText === %[1]s);
		list.value = %[2]s;
		list.dispatchEvent(new Event("change", { bubbles: true }));
		return "";
	})()`, quote(label), quote(value)))
	c.settle(t)
}

// key presses a key, such as kb.Enter.
func (c *console) key(t *testing.T, key string) {
	t.Helper()
	if err := chromedp.Do(c.ctx, chromedp.KeyEvent(key)); err != nil {
		t.Fatalf("pressing %q: %v", key, err)
	}
	c.settle(t)
}

// picture saves a screenshot of the tab in the folder named by the variable SCREENSHOTS, if it is set.
func (c *console) picture(t *testing.T, name string) {
	t.Helper()
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		return
	}
	raw, err := chromedp.Run(c.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, strings.NewReplacer("/", "_", " ", "-").Replace(name)+".png"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// axe is the source of axe-core.
var axe = sync.OnceValues(func() (string, error) {
	root, err := harness.Root()
	if err != nil {
		return "", err
	}
	raw, err := os.ReadFile(filepath.Join(root, "console", "node_modules", "axe-core", "axe.min.js"))
	return string(raw), err
})

// panelless are the selected tabs without a panel of their name, which axe-core does not check.
const panelless = `[...document.querySelectorAll("[role=tab][aria-selected=true]")].filter((tab) => {
	const panel = document.getElementById(tab.getAttribute("aria-controls"));
	return panel?.role !== "tabpanel" || panel.getAttribute("aria-labelledby") !== tab.id;
}).map((tab) => tab.innerText).join(", ")`

// accessible checks the current page with axe-core, and that tabs have panels.
func (c *console) accessible(t *testing.T) {
	t.Helper()
	source, err := axe()
	if err != nil {
		t.Fatalf("axe-core is not installed: %v", err)
	}
	harness.Eventually(t, time.Minute, func() error { // content is pale while it is reloaded
		c.settle(t)
		if c.evaluate(t, `String(document.querySelector(".insight-old") === null)`) != "true" {
			return errors.New("the page still asks")
		}
		return nil
	})
	c.evaluate(t, "if (!window.axe) {"+source+"\n} ''")
	found := c.evaluate(t, `(async () => {
		const { violations } = await axe.run(document, { resultTypes: ["violations"] });
		return violations.map((v) => v.id + ": " + v.help + "\n" + v.nodes.slice(0, 5).map((n) => "    " + n.target + " " + n.html.slice(0, 200)
			+ "\n        " + (n.failureSummary ?? "").replaceAll("\n", " ")).join("\n")).join("\n");
	})()`)
	if found != "" {
		t.Errorf("axe-core finds:\n%s", found)
	}
	if tabs := c.evaluate(t, panelless); tabs != "" {
		t.Errorf("tabs without panels: %s", tabs)
	}
}

// fits checks that the page is not wider than the window.
func (c *console) fits(t *testing.T) {
	t.Helper()
	wider := c.evaluate(t, `(() => {
		const root = document.documentElement;
		if (root.scrollWidth <= root.clientWidth) return "";
		const out = [...document.body.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > root.clientWidth + 1);
		return root.scrollWidth + " of " + root.clientWidth + " pixels: " + out.slice(0, 3).map((e) => e.outerHTML.slice(0, 150)).join("\n");
	})()`)
	if wider != "" {
		t.Errorf("the page is wider than the window: %s", wider)
	}
}
