// Command capture uses posthog-go to send what a shop's server would send.
package main

import (
	"log"
	"os"
	"time"

	"github.com/posthog/posthog-go"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	client, err := posthog.NewWithConfig(os.Getenv("TOKEN"), posthog.Config{Endpoint: os.Getenv("SITE"), BatchSize: 3, Interval: 100 * time.Millisecond})
	if err != nil {
		return err
	}
	for _, message := range []posthog.Message{
		posthog.Capture{DistinctId: "device", Event: "opened", Properties: posthog.NewProperties().Set("nested", map[string]any{"list": []any{1, 2.5, "x", nil}})},
		posthog.Alias{DistinctId: "ann", Alias: "device"},
		posthog.Identify{DistinctId: "ann", Properties: posthog.NewProperties().Set("email", "ann@example.com")},
		posthog.GroupIdentify{Type: "company", Key: "acme", Properties: posthog.NewProperties().Set("plan", "pro")},
		posthog.Capture{DistinctId: "ann", Event: "ordered", Properties: posthog.NewProperties().Set("amount", 12.5), Groups: posthog.NewGroups().Set("company", "acme")},
		posthog.Capture{DistinctId: "nobody", Event: "glanced", Properties: posthog.NewProperties().Set("$process_person_profile", false)},
	} {
		if err := client.Enqueue(message); err != nil {
			return err
		}
	}
	return client.Close()
}
