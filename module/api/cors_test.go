package api_test

import (
	"testing"

	"github.com/caddy-analytics/caddy-analytics/module/api"
)

func TestParseOrigin(t *testing.T) {
	for text, want := range map[string]string{
		"https://app.example.com": "https://app.example.com", "https://App.Example.com:443": "https://app.example.com", "http://localhost:3000": "http://localhost:3000",
		"http://a:80": "http://a", "https://a:80": "https://a:80", "http://[::1]:8080": "http://[::1]:8080", "http://[::1]": "http://[::1]",
		"": "", "app.example.com": "", "https://": "", "https://a/": "", "https://a?": "", "https://a#": "", "https://u@a": "", "ftp://a": "", "https://a b": "", "https://:80": "",
		"https://Bücher.example": "https://xn--bcher-kva.example", "http://straße.example:3000": "http://xn--strae-oqa.example:3000", "https://a\u200d.example": "",
	} {
		got, err := api.ParseOrigin(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("parseOrigin(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
}

// FuzzParseOrigin: each origin has only one spelling.
func FuzzParseOrigin(f *testing.F) {
	for _, seed := range []string{"https://App.example.com:443", "http://[::1]:80", "http://a:080", "https://a%20b", "https://ä.example"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		origin, err := api.ParseOrigin(text)
		if err != nil {
			return
		}
		if again, err := api.ParseOrigin(origin); err != nil || again != origin {
			t.Errorf("parseOrigin(%q) = %q, which is then %q, %v", text, origin, again, err)
		}
	})
}
