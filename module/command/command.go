// Package command implements "caddy analytics …": the commands that manage a running server through its admin address, and the hidden one that runs
// the embedded engine. It knows the server only through package adminapi.
package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "analytics",
		Short: "Manages projects, keys, endpoints and data of the analytics API, and opens its console",
		Long: `
Manages the analytics API of a running server through its admin address. Results
go to standard output as one JSON object, messages to standard error.
`,
		CobraFunc: func(root *cobra.Command) {
			root.PersistentFlags().String("address", caddy.DefaultAdminListen, "the admin address of the running server")
			root.AddCommand(projectCommand(), keyCommand(), tokenCommand(), importCommand(), personCommand(), captureCommand(), propertyCommand(), cohortCommand(), alertCommand(), endpointsCommand(), backupCommand(), registryCommand(), consoleCommand(), upgradeCommand(), versionCommand())
			root.Args = subcommandOnly
			root.RunE = func(cmd *cobra.Command, args []string) error {
				if len(args) > 0 {
					return showHelp(cmd, args)
				}
				return cmd.Help()
			}
			root.SetFlagErrorFunc(flagMistake)
		},
	})
}

// leaf returns a command without subcommands; run's result is written as JSON.
func leaf(use, short string, args cobra.PositionalArgs, run func(*cobra.Command, []string) (any, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			cmd.SilenceUsage = true
			if err := checkGiven(cmd); err != nil {
				return err
			}
			result, err := run(cmd, args)
			if err == nil || errors.Is(err, errBadLines) || errors.Is(err, errNotWhole) {
				if err := json.NewEncoder(cmd.OutOrStdout()).Encode(result); err != nil {
					return fmt.Errorf("writing the result: %w", err)
				}
			}
			return err
		},
	}
}

func group(use, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: subcommandOnly,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return showHelp(cmd, args)
			}
			return errors.Join(errors.New(use+" needs one of its subcommands"), cmd.Usage())
		},
	}
	cmd.AddCommand(children...)
	return cmd
}

func mustRequire(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		if err := cmd.MarkFlagRequired(flag); err != nil {
			panic("BUG: " + err.Error())
		}
	}
}

// mayBeEmpty are the flags for which an empty value means something.
var mayBeEmpty = []string{"label", "shard"}

// checkGiven refuses flags that are given without a value, as --retention "$DAYS" is if DAYS is not set: they must not mean the same as no flag, or off.
func checkGiven(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		empty := f.Value.String() == ""
		if list, ok := f.Value.(pflag.SliceValue); ok {
			empty = len(list.GetSlice()) == 0
		}
		if empty && err == nil && !slices.Contains(mayBeEmpty, f.Name) {
			err = fmt.Errorf("--%s is empty", f.Name)
		}
	})
	return err
}

func text(cmd *cobra.Command, flag string) string {
	value, err := cmd.Flags().GetString(flag)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return value
}

// choice returns the value of a flag that must be one of at least two.
func choice(cmd *cobra.Command, flag string, among ...string) (string, error) {
	given := text(cmd, flag)
	if !slices.Contains(among, given) {
		last := len(among) - 1
		return "", fmt.Errorf("--%s must be %s or %s, not %q", flag, strings.Join(among[:last], ", "), among[last], given)
	}
	return given, nil
}

func number(cmd *cobra.Command, flag string) int64 {
	value, err := cmd.Flags().GetInt64(flag)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return value
}

func flag(cmd *cobra.Command, name string) bool {
	value, err := cmd.Flags().GetBool(name)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return value
}

// call sends a request to the running server's admin API, with body as JSON unless it is nil or an io.Reader.
func call[T any](cmd *cobra.Command, method, uri string, body any) (T, error) {
	var out T
	var reader io.Reader
	header := http.Header{}
	switch b := body.(type) {
	case nil:
	case io.Reader:
		reader = b
		header.Set("Content-Type", "application/x-ndjson")
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return out, fmt.Errorf("encoding the request: %w", err)
		}
		reader = bytes.NewReader(raw)
	}
	resp, err := caddycmd.AdminAPIRequest(text(cmd, "address"), method, uri, header, reader)
	if err != nil {
		return out, refusal(text(cmd, "address"), err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return out, fmt.Errorf("reading the server's answer: %w", err)
	}
	return out, nil
}

// refusal is what an error of Caddy's admin client means for an operator: the reason that the server gave, or else which server was asked.
func refusal(address string, err error) error {
	var answer struct {
		Error string `json:"error"`
	}
	if _, response, answered := strings.Cut(err.Error(), "caddy responded with error: HTTP "); answered {
		if _, body, _ := strings.Cut(response, ": "); json.Unmarshal([]byte(body), &answer) == nil && answer.Error != "" {
			return errors.New(answer.Error)
		}
	}
	return fmt.Errorf("asking the server at %s (--address names another one): %w", address, err)
}
