package docstest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// Reference compares the file with the reference page of the command, or writes it.
func Reference(t *testing.T, file string, root *cobra.Command, write bool) {
	t.Helper()
	page := commands(root)
	if write {
		if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(page, string(kept)); diff != "" {
		t.Errorf("the page is old; run this test with -update: %s", diff)
	}
}

// commands is the reference page of a command and its subcommands: what each does, its usage, examples and flags.
func commands(root *cobra.Command) string {
	page := strings.Builder{}
	fmt.Fprintf(&page, "# %s\n\n<!-- Generated from the code: see TestReference. -->\n\n%s.\n", root.CommandPath(), root.Short)
	if flags := root.PersistentFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(&page, "\nFlags of all commands:\n\n```\n%s```\n", flags)
	}
	for _, c := range root.Commands() {
		command(&page, c)
	}
	return page.String()
}

func command(page *strings.Builder, c *cobra.Command) {
	if !c.IsAvailableCommand() || c.Name() == "completion" || c.Name() == "help" {
		return
	}
	fmt.Fprintf(page, "\n## %s\n\n%s.\n", c.CommandPath(), strings.TrimSuffix(c.Short, "."))
	if long := strings.TrimSpace(c.Long); long != "" {
		fmt.Fprintf(page, "\n%s\n", long)
	}
	if c.Runnable() {
		fmt.Fprintf(page, "\n```\n%s\n```\n", c.UseLine())
	}
	if c.Example != "" {
		fmt.Fprintf(page, "\nExamples:\n\n```sh\n%s\n```\n", strings.Trim(c.Example, "\n"))
	}
	if flags := c.NonInheritedFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(page, "\nFlags:\n\n```\n%s```\n", flags)
	}
	for _, sub := range c.Commands() {
		command(page, sub)
	}
}
