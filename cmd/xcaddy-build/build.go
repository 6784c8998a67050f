package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// self is the path of this module, which every build includes.
const self = "github.com/caddy-analytics/caddy-analytics"

// wantsBuild reports whether args ask for a build. Caddy's own arguments begin with a subcommand.
func wantsBuild(args []string) bool {
	if len(args) == 0 {
		return false
	}
	name := strings.TrimLeft(args[0], "-")
	name, _, _ = strings.Cut(name, "=")
	return strings.HasPrefix(args[0], "-") && (name == "with" || name == "output")
}

// plugin is the value of a --with flag.
type plugin struct {
	path    string
	version string // empty means the latest
	folder  string // absolute; empty means the module proxy
}

// parsePlugin reads module[@version][=folder].
func parsePlugin(text string) (plugin, error) {
	name, folder, _ := strings.Cut(text, "=")
	path, version, _ := strings.Cut(name, "@")
	p := plugin{path: path, version: version}
	if err := module.CheckImportPath(path); err != nil {
		return p, fmt.Errorf("--with %s: %w", text, err)
	}
	if folder != "" {
		absolute, err := filepath.Abs(folder)
		if err != nil {
			return p, fmt.Errorf("--with %s: %w", text, err)
		}
		if _, err := os.Stat(filepath.Join(absolute, "go.mod")); err != nil {
			return p, fmt.Errorf("--with %s: %s is not a module: %w", text, folder, err)
		}
		p.folder = absolute
	}
	return p, nil
}

// build generates a main package that imports Caddy, this module and the plugins, and compiles it.
func build(ctx context.Context, args []string) error {
	var plugins []plugin
	flags := flag.NewFlagSet("xcaddy-build", flag.ContinueOnError)
	output := flags.String("output", "caddy", "the `file` to write")
	flags.Func("with", "a plugin to add, as `module[@version][=folder]`; can be repeated", func(text string) error {
		p, err := parsePlugin(text)
		plugins = append(plugins, p)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	target, err := filepath.Abs(*output)
	if err != nil {
		return fmt.Errorf("--output %s: %w", *output, err)
	}
	folder, err := os.MkdirTemp("", "xcaddy-build-")
	if err != nil {
		return fmt.Errorf("creating a build folder: %w", err)
	}
	defer os.RemoveAll(folder)
	if err := writeModule(ctx, folder, plugins); err != nil {
		return err
	}
	for _, p := range plugins {
		if p.folder == "" {
			wanted := p.path + "@" + p.version
			if p.version == "" {
				wanted = p.path + "@latest"
			}
			if err := goTool(ctx, folder, "get", wanted); err != nil {
				return err
			}
		}
	}
	return goTool(ctx, folder, "build", "-mod=mod", "-trimpath", "-ldflags=-s -w", "-o", target, ".")
}

// writeModule writes go.mod, go.sum and main.go of the program to build. It copies this module's requirements, so that
// both use the same versions.
func writeModule(ctx context.Context, folder string, plugins []plugin) error {
	source, version, err := findSelf(ctx)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return fmt.Errorf("reading this module's requirements: %w", err)
	}
	mod, err := modfile.Parse("go.mod", raw, nil)
	if err != nil {
		return fmt.Errorf("reading this module's requirements: %w", err)
	}
	edit := func(change error) { err = errors.Join(err, change) }
	edit(mod.AddModuleStmt("caddy"))
	edit(mod.AddRequire(self, version))
	edit(mod.AddReplace(self, "", source, ""))
	for _, p := range plugins {
		if p.folder != "" {
			edit(mod.AddRequire(p.path, localVersion(p)))
			edit(mod.AddReplace(p.path, "", p.folder, ""))
		}
	}
	if err != nil {
		return fmt.Errorf("writing the requirements: %w", err)
	}
	text, err := mod.Format()
	if err != nil {
		return fmt.Errorf("writing the requirements: %w", err)
	}
	sums, err := os.ReadFile(filepath.Join(source, "go.sum"))
	if err != nil {
		return fmt.Errorf("reading this module's checksums: %w", err)
	}
	program, err := mainProgram(plugins)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"go.mod": text, "go.sum": sums, "main.go": program} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return fmt.Errorf("writing the program to build: %w", err)
		}
	}
	return nil
}

// localVersion returns the version to require of a plugin in a folder: the given one, or the lowest of its major version.
func localVersion(p plugin) string {
	if semver.IsValid(p.version) {
		return p.version
	}
	if _, major, ok := module.SplitPathVersion(p.path); ok && major != "" {
		return strings.TrimLeft(major, "/.") + ".0.0"
	}
	return "v0.0.0"
}

func mainProgram(plugins []plugin) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("package main\n\nimport (\n\tcaddycmd \"github.com/caddyserver/caddy/v2/cmd\"\n")
	for _, path := range append([]string{"github.com/caddyserver/caddy/v2/modules/standard", self}, paths(plugins)...) {
		fmt.Fprintf(&b, "\t_ %q\n", path)
	}
	b.WriteString(")\n\nfunc main() { caddycmd.Main() }\n")
	program, err := format.Source(b.Bytes())
	if err != nil {
		return nil, fmt.Errorf("writing the program to build: %w", err)
	}
	return program, nil
}

func paths(plugins []plugin) []string {
	out := make([]string, len(plugins))
	for i, p := range plugins {
		out[i] = p.path
	}
	return out
}

// findSelf locates the source of this module: the checkout in the working directory, else the module that this binary was
// built from.
func findSelf(ctx context.Context) (folder, version string, err error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}")
	if out, err := list.Output(); err == nil {
		if path, dir, ok := strings.Cut(strings.TrimSpace(string(out)), " "); ok && path == self {
			return dir, "v0.0.0", nil
		}
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", "", errors.New("this binary has no build information; run xcaddy-build in its checkout")
	}
	for _, dep := range append(info.Deps, &info.Main) {
		if dep.Path == self && semver.IsValid(dep.Version) {
			download := exec.CommandContext(ctx, "go", "mod", "download", "-json", self+"@"+dep.Version)
			out, err := download.Output()
			if err != nil {
				return "", "", fmt.Errorf("downloading %s@%s: %w", self, dep.Version, err)
			}
			dir, err := downloadedTo(out)
			return dir, dep.Version, err
		}
	}
	return "", "", errors.New("run xcaddy-build in a checkout of " + self)
}

func goTool(ctx context.Context, folder string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w", args[0], err)
	}
	return nil
}

// downloadedTo returns the folder in the output of `go mod download -json`.
func downloadedTo(out []byte) (string, error) {
	var answer struct{ Dir string }
	if err := json.Unmarshal(out, &answer); err != nil || answer.Dir == "" {
		return "", errors.New("go mod download did not say where it put the module")
	}
	return answer.Dir, nil
}
