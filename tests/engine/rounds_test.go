package engine_test

import (
	"os"
	"strconv"
	"testing"
)

// Environment variables: how many times the usual number of random queries to ask, and the seed of the first where each has its own.
const (
	roundsEnv = "ROUNDS"
	seedEnv   = "SEED"
)

// rounds returns how many random queries to ask: half of the usual number with -short, and otherwise ROUNDS times that number.
func rounds(t *testing.T, usual int) int {
	t.Helper()
	if testing.Short() {
		return max(usual/2, 1)
	}
	return usual * number(t, roundsEnv)
}

// firstSeed returns the seed of the first random query.
func firstSeed(t *testing.T) int {
	t.Helper()
	return number(t, seedEnv)
}

// number returns the number in an environment variable, 1 if it is not set.
func number(t *testing.T, name string) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, which is not a positive number", name, text)
	}
	return n
}
