package clients_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// eventCode is the folder with the code that the server generates for some events; see TestCode there.
const eventCode = "../../module/eventcode/testdata"

// uses is a program that captures with this code.
const uses = `import posthog from './events'
posthog.capture('ordered', { amount: 12.5, 'first order': true, at: new Date(), other: 1 })
posthog.capture('ordered')
posthog.capture('another', { any: 'thing' })
posthog.capture('$pageview', { path: '/' })
posthog.captureRaw('ordered', { amount: 'x' })
posthog.identify('ann')
// @ts-expect-error amount is a number
posthog.capture('ordered', { amount: 'x' })
`

// TestEventCode compiles the code for events with the published versions of PostHog's SDKs.
func TestEventCode(t *testing.T) {
	if testing.Short() {
		t.Skip("npm packages take their time")
	}
	copyTo := func(t *testing.T, name, to string) {
		t.Helper()
		code, err := os.ReadFile(filepath.Join(eventCode, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, code, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("TypeScript", func(t *testing.T) {
		compilers, err := harness.Packages("typescript")
		if err != nil {
			t.Fatalf("fetching the compiler: %v", err)
		}
		sdks, err := harness.Packages("sdks")
		if err != nil {
			t.Fatalf("fetching the SDKs: %v", err)
		}
		folder := t.TempDir()
		if err := os.Symlink(filepath.Join(sdks, "node_modules"), filepath.Join(folder, "node_modules")); err != nil {
			t.Fatal(err)
		}
		files := []string{"events.ts", "hostile.ts", "none.ts"}
		for _, name := range files {
			copyTo(t, name, filepath.Join(folder, name))
		}
		if err := os.WriteFile(filepath.Join(folder, "uses.ts"), []byte(uses), 0o600); err != nil {
			t.Fatal(err)
		}
		options := []string{"--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--lib", "es2022,dom", "--module", "esnext", "--moduleResolution", "bundler", "uses.ts"}
		site{}.run(t, folder, filepath.Join(compilers, "node_modules", ".bin", "tsc"), append(options, files...)...)
	})
	t.Run("Go", func(t *testing.T) {
		folder := workshop(t, "capture-go")
		if err := os.Mkdir(filepath.Join(folder, "typed"), 0o750); err != nil {
			t.Fatal(err)
		}
		copyTo(t, "events.go.txt", filepath.Join(folder, "typed", "typed.go"))
		site{}.run(t, folder, "go", "vet", "./typed")
	})
}
