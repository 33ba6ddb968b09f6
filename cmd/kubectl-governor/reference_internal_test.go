package main

import (
	"flag"
	"testing"

	"github.com/governor-dev/governor/test/docstest"
)

var update = flag.Bool("update", false, "write the reference of the commands")

// TestReference: docs/reference/kubectl-governor.md has all commands and flags; -update writes it.
func TestReference(t *testing.T) {
	t.Setenv("HOME", "/home/user") // it is the default of a flag
	docstest.Reference(t, "../../docs/reference/kubectl-governor.md", root(&session{flags: flags()}), *update)
}
