package main

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

const (
	writesPerSecond = 50
	writtenInsights = 5000 // saved insights of the project under test
)

// addInsights saves insights and returns the largest id.
func addInsights(client *harness.Client) (last int64, err error) {
	var failed error
	var mu sync.Mutex
	var senders sync.WaitGroup
	for sender := range 4 {
		senders.Go(func() {
			for i := sender; i < writtenInsights; i += 4 {
				answer, err := client.Send(http.MethodPost, "insights/", map[string]any{"name": fmt.Sprintf("insight %d", i)})
				if err == nil && answer.Status != http.StatusCreated {
					err = fmt.Errorf("saving an insight: %d %s", answer.Status, answer.Raw)
				}
				id, _ := answer.Body["id"].(float64)
				mu.Lock()
				last, failed = max(last, int64(id)), errors.Join(failed, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	senders.Wait()
	return last, failed
}

// writing changes an insight repeatedly, at a fixed rate, until stop is called, which returns how often it did.
func writing(client *harness.Client, insight int64) (stop func() (writes int, err error)) {
	ended := make(chan struct{})
	var writer sync.WaitGroup
	var writes int
	var failed error
	writer.Go(func() {
		next := time.NewTicker(time.Second / writesPerSecond)
		defer next.Stop()
		for {
			select {
			case <-ended:
				return
			case <-next.C:
			}
			answer, err := client.Send(http.MethodPatch, fmt.Sprintf("insights/%d/", insight), map[string]any{"name": fmt.Sprintf("name %d", writes)})
			if err == nil && answer.Status != http.StatusOK {
				err = fmt.Errorf("changing an insight: %d %s", answer.Status, answer.Raw)
			}
			if err != nil {
				failed = err
				return
			}
			writes++
		}
	})
	return func() (int, error) {
		close(ended)
		writer.Wait()
		return writes, failed
	}
}
