// Command kubectl-governor is the kubectl plugin. It shows what Governor will do with an
// object, what it did and why, and the status of all objects. It has the rights of its
// user, and calls only the API server.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
)

// Exit codes, for pipelines.
const (
	failed  = 1
	changes = 2 // a plan that has changes, with --detailed-exitcode
)

// version is set by the build of a release.
var version = "devel"

// errChanges is the result of a plan with changes. It sets the exit code, and is not printed.
var errChanges = errors.New("there are changes")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rest.SetDefaultWarningHandler(rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true}))
	streams := genericclioptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	s := &session{
		flags: flags(), IOStreams: streams, now: time.Now,
		screen: screenOf(os.Stdout), asks: screenOf(os.Stdin) != nil,
	}
	err := root(s).ExecuteContext(ctx)
	switch {
	case errors.Is(err, errChanges):
		os.Exit(changes)
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(failed)
	}
}

func flags() *genericclioptions.ConfigFlags {
	return genericclioptions.NewConfigFlags(true).WithWrapConfigFn(func(c *rest.Config) *rest.Config {
		c.QPS = -1 // the API server's priority and fairness limits the requests
		return c
	})
}

func root(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubectl-governor",
		Short: "Show what Governor will do, what it did and why, and the status of all objects",
		Annotations: map[string]string{
			cobra.CommandDisplayNameAnnotation: "kubectl governor",
		},
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	s.flags.AddFlags(cmd.PersistentFlags())
	s.completeFlags(cmd)
	cmd.AddCommand(statusCommand(s), membersCommand(s), eventsCommand(s))
	cmd.AddCommand(planCommand(s), historyCommand(s), whyCommand(s))
	cmd.AddCommand(approveCommand(s), revokeCommand(s), bypassCommand(s), pauseCommand(s), resumeCommand(s), rollbackCommand(s), revisionsCommand(s))
	cmd.AddCommand(chaosCommand(s))
	return cmd
}
