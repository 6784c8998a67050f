package command

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/caddy-analytics/caddy-analytics/internal/pause"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
)

func personCommand() *cobra.Command {
	remove := leaf("delete --project <id> [--events] [--keep-person] [--wait | --now] <id>|<distinct_id>...",
		"Deletes people from all answers at once, and from the disk later", cobra.MinimumNArgs(1), runDeletePersons)
	remove.Flags().Bool("events", false, "delete their events too")
	remove.Flags().Bool("keep-person", false, "delete the events alone")
	remove.Flags().Bool("wait", false, "wait until nothing of them is on the disk")
	remove.Flags().Bool("now", false, "erase what is deleted from the disk now, and wait for that")

	list := leaf("deletions --project <id>", "Lists deletions of people, those that are not erased from the disk first", cobra.NoArgs,
		func(cmd *cobra.Command, _ []string) (any, error) { return listDeletions(cmd) })
	for _, cmd := range []*cobra.Command{remove, list} {
		cmd.Flags().Int64("project", 0, "the project")
		mustRequire(cmd, "project")
	}
	return group("person", "Deletes people and their events", remove, list)
}

func listDeletions(cmd *cobra.Command) (adminapi.Deletions, error) {
	return call[adminapi.Deletions](cmd, http.MethodGet, "/analytics/persons/deletions?"+ofProject(cmd), nil)
}

func runDeletePersons(cmd *cobra.Command, args []string) (any, error) {
	done, err := call[adminapi.Deletions](cmd, http.MethodPost, "/analytics/persons/delete", adminapi.DeletePersons{
		Project: number(cmd, "project"), Persons: args, Events: flag(cmd, "events"), KeepPerson: flag(cmd, "keep-person"),
	})
	if err != nil {
		return nil, err
	}
	persons, events := map[string]bool{}, int64(0)
	var eraseAt time.Time
	for _, d := range done.Deletions {
		persons[d.Person] = true
		events += d.EventCount
		if d.EraseAt != nil {
			eraseAt = *d.EraseAt
		}
	}
	people, gone := english.Plural(len(persons), "person", "people"), english.Plural(int(events), "event", "events")
	what := "deleted " + people
	switch {
	case flag(cmd, "keep-person"):
		what = "deleted " + gone + " of " + people
	case flag(cmd, "events"):
		what += " and " + gone
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s: they are in no answer any more, and are erased from the disk after %s\n", what, eraseAt.Local().Format(time.DateTime))
	switch {
	case flag(cmd, "now"):
		if _, err := call[adminapi.Erased](cmd, http.MethodPost, "/analytics/persons/erase", nil); err != nil {
			return done, err
		}
	case !flag(cmd, "wait"):
		return done, nil
	}
	return waitErased(cmd, done)
}

// waitErased waits until deletions are erased.
func waitErased(cmd *cobra.Command, done adminapi.Deletions) (any, error) {
	for {
		all, err := listDeletions(cmd)
		if err != nil {
			return done, err
		}
		current := map[string]adminapi.Deletion{}
		for _, d := range all.Deletions {
			current[d.ID] = d
		}
		erased := true
		for n, d := range done.Deletions {
			now, known := current[d.ID]
			if !known {
				return done, errors.New("the record of a deletion is gone: it was purged after it was erased, or its project was deleted")
			}
			done.Deletions[n] = now
			erased = erased && now.ErasedAt != nil
		}
		if erased {
			fmt.Fprintln(cmd.ErrOrStderr(), "nothing of them is on the disk any more")
			return done, nil
		}
		if pause.For(cmd.Context(), time.Second) != nil {
			return done, cmd.Context().Err()
		}
	}
}
