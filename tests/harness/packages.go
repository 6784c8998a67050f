package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Packages returns a folder with the npm packages that the package-lock.json in folder pins. It is in the user's cache folder
// and filled once.
func Packages(folder string) (string, error) {
	lock, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(lock)
	filled := filepath.Join(cache, "caddy-analytics", "clients", runtime.GOOS+"-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(filled); err == nil {
		return filled, nil
	}
	if err := os.MkdirAll(filepath.Dir(filled), 0o750); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(filled), "fetch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	if err := os.CopyFS(fresh, os.DirFS(folder)); err != nil {
		return "", err
	}
	install := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	install.Dir = fresh
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	if err := os.Rename(fresh, filled); err != nil && !os.IsExist(err) { // a rename is atomic
		return "", err
	}
	return filled, nil
}
