package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// subcommandOnly refuses words that are not subcommands of the command; cobra handles those that are. "help", which cobra has only for the whole program,
// may come before them: see showHelp.
func subcommandOnly(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if args[0] == "help" {
		named, rest, err := cmd.Find(args[1:])
		if err != nil || !named.HasSubCommands() {
			return err
		}
		return subcommandOnly(named, rest)
	}
	var names []string
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
		}
	}
	return fmt.Errorf("unknown command %q for %q%s; its commands are %s", args[0], cmd.CommandPath(), didYouMean(args[0], "", names), strings.Join(names, ", "))
}

// showHelp shows the help of the command that the words after "help" name.
func showHelp(cmd *cobra.Command, args []string) error {
	named, _, err := cmd.Find(args[1:])
	if err != nil {
		return err
	}
	return named.Help()
}

// flagMistake explains an error in the flags of a command.
func flagMistake(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return fmt.Errorf("%w%s; see %s --help", err, didYouMean(unknown.GetSpecifiedName(), "--", names), cmd.CommandPath())
}

// didYouMean suggests the nearest name, if one is near.
func didYouMean(typed, prefix string, names []string) string {
	nearest := schema.Nearest(typed, slices.Values(names))
	if nearest == "" {
		return ""
	}
	return ": did you mean " + prefix + nearest + "?"
}
