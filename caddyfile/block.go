package caddyfile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// onlyBlock is block for an option that has no arguments of its own. Without the check, block would read them as its first option.
func onlyBlock(d *caddyfile.Dispenser, options map[string]func() error) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	return block(d, options)
}

// block reads the options of the block that opens here. Only those in repeatable may occur more than once.
func block(d *caddyfile.Dispenser, options map[string]func() error, repeatable ...string) error {
	seen := make(map[string]bool, len(options))
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		read, ok := options[name]
		if !ok {
			return d.Errf("unknown option %q (want one of %s)", name, strings.Join(slices.Sorted(maps.Keys(options)), ", "))
		}
		if seen[name] && !slices.Contains(repeatable, name) {
			return d.Errf("%s is set twice", name)
		}
		seen[name] = true
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// text reads the single argument of an option unchanged.
func text(d *caddyfile.Dispenser, out *string) func() error {
	return value(d, out, func(s string) (string, error) { return s, nil })
}

// flag sets an option that has no argument.
func flag(d *caddyfile.Dispenser, out *bool) func() error {
	return func() error {
		*out = true
		if d.NextArg() {
			return d.ArgErr()
		}
		return nil
	}
}

// value reads the single argument of an option with parse. An empty one is most likely an environment variable that is not set: taking it for the default
// would open another registry or data folder.
func value[T any](d *caddyfile.Dispenser, out *T, parse func(string) (T, error)) func() error {
	return func() error {
		name := d.Val()
		return argument(d, name, name+" is empty; remove it to use the default", out, parse)
	}
}

// argument reads the last argument of an option with parse; empty says that there must be one.
func argument[T any](d *caddyfile.Dispenser, name, empty string, out *T, parse func(string) (T, error)) error {
	if !d.NextArg() {
		return d.ArgErr()
	}
	if d.Val() == "" {
		return d.Err(empty)
	}
	parsed, err := parse(d.Val())
	if err != nil {
		return d.Errf("%s: %w", name, err)
	}
	*out = parsed
	if d.NextArg() {
		return d.ArgErr()
	}
	return nil
}

// within returns a parser that also applies check.
func within[T any](parse func(string) (T, error), check func(T) error) func(string) (T, error) {
	return func(s string) (T, error) {
		parsed, err := parse(s)
		if err == nil {
			err = check(parsed)
		}
		return parsed, err
	}
}

// unlessPlaceholder returns a parser for texts that check accepts. One with placeholders is checked later, once they are replaced.
func unlessPlaceholder(check func(string) error) func(string) (string, error) {
	return func(s string) (string, error) {
		if strings.Contains(s, "{") {
			return s, nil
		}
		return s, check(s)
	}
}

func duration(s string) (caddy.Duration, error) {
	parsed, err := caddy.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a valid duration (want, for example, 5m)", s)
	}
	return caddy.Duration(parsed), nil
}

func positive(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("%q is not a positive number", s)
	}
	return n, nil
}

// onOrOff reads a switch.
func onOrOff(s string) (bool, error) {
	switch s {
	case "on":
		return true, nil
	case "off":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither on nor off", s)
}
