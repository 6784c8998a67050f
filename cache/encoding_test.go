package cache_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

func TestNegotiate(t *testing.T) {
	tests := []struct {
		name, header string
		want         cache.Encoding
	}{
		{"none", "", cache.Identity},
		{"gzip", "gzip", cache.Gzip},
		{"old name of gzip", "x-gzip", cache.Gzip},
		{"zstd", "zstd", cache.Zstd},
		{"a browser's", "gzip, deflate, br, zstd", cache.Zstd},
		{"unsupported", "br, deflate", cache.Identity},
		{"case and space", "\t GZip\t, deflate", cache.Gzip},
		{"the client's preference", "zstd;q=0.5, gzip;q=0.8", cache.Gzip},
		{"third digit", "zstd;q=0.998, gzip;q=0.999", cache.Gzip},
		{"upper case weight, spaces", "zstd ; Q = 0.1 , gzip; q=0.2", cache.Gzip},
		{"refused", "gzip;q=0, zstd;q=0.000", cache.Identity},
		{"anything", "*", cache.Zstd},
		{"anything but", "zstd;q=0, *", cache.Gzip},
		{"anything, less preferred", "gzip, *;q=0.5", cache.Gzip},
		{"nothing else", "gzip;q=0.1, *;q=0", cache.Gzip},
		{"plain preferred", "identity, gzip;q=0.5", cache.Identity},
		{"plain less preferred", "identity;q=0.5, gzip", cache.Gzip},
		{"plain equally preferred", "identity, gzip", cache.Gzip},
		{"plain refused", "identity;q=0, gzip;q=0.1", cache.Gzip},
		{"all refused", "identity;q=0, *;q=0", cache.Identity},
		{"last one counts", "gzip;q=0, gzip", cache.Gzip},
		{"malformed weights", "zstd;q=2, zstd;q=1.001, zstd;q=x, zstd;q=, zstd;q, zstd;q=0.1234, zstd;q=-1, gzip;q=0.001", cache.Gzip},
		{"another parameter", "zstd;level=3, gzip", cache.Gzip},
		{"empty elements", ",, gzip ,", cache.Gzip},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := cache.Negotiate(tt.header); got != tt.want {
				t.Errorf("Negotiate(%q) = %s, want %s", tt.header, got, tt.want)
			}
		})
	}
}

// element is one element of an Accept-Encoding header.
var element = regexp.MustCompile(`^[ \t]*([^;]*?)[ \t]*(?:;[ \t]*[qQ][ \t]*=[ \t]*(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)[ \t]*)?$`)

// negotiate is a literal implementation of RFC 9110, section 12.5.3.
func negotiate(header string) cache.Encoding {
	weights := make(map[string]float64)
	for part := range strings.SplitSeq(header, ",") {
		match := element.FindStringSubmatch(part)
		if match == nil {
			continue
		}
		weight := 1.0
		if match[2] != "" {
			weight, _ = strconv.ParseFloat(match[2], 64)
		}
		coding := match[1]
		for _, known := range []string{"zstd", "gzip", "identity"} {
			if strings.EqualFold(coding, known) || known == "gzip" && strings.EqualFold(coding, "x-gzip") {
				coding = known
			}
		}
		weights[coding] = weight
	}
	best, bestWeight := cache.Identity, weights["identity"]
	for _, encoding := range []cache.Encoding{cache.Gzip, cache.Zstd} {
		weight, said := weights[encoding.String()]
		if !said {
			weight = weights["*"]
		}
		if weight > 0 && weight >= bestWeight {
			best, bestWeight = encoding, weight
		}
	}
	return best
}

func FuzzNegotiate(f *testing.F) {
	for _, seed := range []string{
		"", "gzip", "gzip, deflate, br;q=0.9, zstd", "*;q=0.5, identity;q=0, x-gzip;q=0.501", "zstd ; q = 1.000 ,gzip;q=0.",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if got, want := cache.Negotiate(header), negotiate(header); got != want {
			t.Errorf("Negotiate(%q) = %s, want %s", header, got, want)
		}
	})
}

func TestMatchETag(t *testing.T) {
	tests := []struct {
		name, header, etag string
		want               bool
	}{
		{"none", "", `"a"`, false},
		{"same", `"a"`, `"a"`, true},
		{"other", `"b"`, `"a"`, false},
		{"weak in the header", `W/"a"`, `"a"`, true},
		{"weak on our side", `"a"`, `W/"a"`, true},
		{"in a list", `"x", W/"y" ,"a"`, `"a"`, true},
		{"empty elements", ` , "x",, "a"`, `"a"`, true},
		{"not in a list", `"x", "y"`, `"a"`, false},
		{"comma in a tag", `"x,"y", "a"`, `"a"`, false},
		{"any", "*", `"a"`, true},
		{"any, with space", " * ", `"a"`, true},
		{"any, but we have none", "*", "", false},
		{"star as a tag", `"*"`, `"a"`, false},
		{"another encoding", `"a.gzip"`, `"a"`, false},
		{"beginning of ours", `"a"`, `"ab"`, false},
		{"case counts", `"A"`, `"a"`, false},
		{"lower case w", `w/"a"`, `"a"`, false},
		{"without quotes", `a`, `"a"`, false},
		{"without end", `"a`, `"a"`, false},
		{"after a mistake", `a, "a"`, `"a"`, false},
		{"weak sign alone", `W/`, `"a"`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := cache.MatchETag(tt.header, tt.etag); got != tt.want {
				t.Errorf("MatchETag(%q, %q) = %t, want %t", tt.header, tt.etag, got, tt.want)
			}
		})
	}
}

func FuzzMatchETag(f *testing.F) {
	f.Add(`"x", W/"y"`, "a", uint(1))
	f.Add("*", "", uint(0))
	f.Add(`W/"`, "b", uint(7))
	f.Fuzz(func(t *testing.T, header, opaque string, position uint) {
		cache.MatchETag(header, header) // must not panic
		if strings.Contains(opaque, `"`) {
			t.Skip("not an entity tag")
		}
		etag := `"` + opaque + `"`
		tags := regexp.MustCompile(`(?:W/)?"[^"]*"`).FindAllString(header, -1)
		want := slices.Contains(tags, etag) || slices.Contains(tags, "W/"+etag)
		if got := cache.MatchETag(strings.Join(tags, ", "), etag); got != want {
			t.Errorf("MatchETag(%q, %q) = %t, want %t", tags, etag, got, want)
		}
		tags = slices.Insert(tags, int(position%uint(len(tags)+1)), "W/"+etag)
		if !cache.MatchETag(strings.Join(tags, ","), etag) {
			t.Errorf("MatchETag(%q, %q) = false", tags, etag)
		}
	})
}

func TestHeadersAreReadWithoutAllocating(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		cache.Negotiate("gzip;q=0.5, deflate, br, ZSTD")
		cache.MatchETag(`"x", W/"y"`, `"z"`)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestNamesOfUnknownValues(t *testing.T) {
	got := []string{cache.Encoding(9).String(), cache.Status(0).String()}
	if diff := cmp.Diff([]string{"encoding 9", "status 0"}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
