// Package operator is the program around applications: one command line, one leader, health and metrics, and webhooks
// with certificates of its own. An author's whole main is
//
//	func main() {
//		operator.Main(operator.Options{
//			Name: "chocolate", Version: version, APIs: []func(*runtime.Scheme) error{v1.AddToScheme},
//			Register: func(op *engine.Operator) error {
//				return engine.Register(op, engine.App[*v1.Candy, candy.World]{Name: "candy", Planner: candy.Planner{}, Steps: candy.Steps(), Driver: driver.New})
//			},
//		})
//	}
//
// and `chocolate run` is an operator like Governor itself, which is made of this package and nothing else: it waits for
// the API server instead of ending, elects a leader and keeps the standby warm, and answers previews and advice.
//
// The package operator/testcluster runs the same program against a real API server in tests.
package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/governor-dev/governor/engine"
	"github.com/governor-dev/governor/kube/conversion"
)

// Options say what is one operator's own.
type Options struct {
	// Name of the program, e.g. governor: a DNS label. All other names are derived from it.
	Name string

	// Short is what it does, in a line, for its help.
	Short string

	// Version of the operator, for the history and its user agent; empty means "unreleased".
	Version string

	// APIs add the kinds of its applications to a scheme. Those of Kubernetes itself are there already.
	APIs []func(*runtime.Scheme) error

	// Register adds its applications, with engine.Register for each. It is called again when the operator starts again
	// in the same process, as it does after an outage of the API server or when it has lost its lease.
	Register func(*engine.Operator) error

	// Conversions are between versions of its kinds; nil if each has one version.
	Conversions *conversion.Handler

	// Converted are the names of the definitions that are converted, e.g. candies.awesome.corp.com. Those of others
	// are left alone.
	Converted []string

	// PolicyStatus writes the status of the cluster's OperationPolicies, which one operator may: Governor does. Leave it
	// false for one that may run beside Governor; it follows policies all the same, if APIs has their kinds.
	PolicyStatus bool

	// Lease is the name of the lease that the leader holds; empty means the name with ".governor.dev".
	Lease string

	// WebhookService is the Service by which API servers call; empty means the name with "-webhook".
	WebhookService string

	// WebhookConfiguration is the name of the webhook configurations that lead there; empty means the name.
	WebhookConfiguration string
}

// complete returns the options with every derived name, or what is wrong with them.
func (o Options) complete() (Options, error) {
	if wrong := validation.IsDNS1123Label(o.Name); len(wrong) > 0 {
		return o, fmt.Errorf("operator.Options.Name %q cannot name an operator: %s", o.Name, wrong[0])
	}
	if o.Register == nil {
		return o, errors.New("operator.Options.Register is nil: an operator needs an application")
	}
	if len(o.Converted) > 0 && o.Conversions == nil {
		return o, fmt.Errorf("operator.Options.Converted names %v, but Conversions is nil: no webhook converts them", o.Converted)
	}
	o.Version = cmp.Or(o.Version, "unreleased")
	o.Lease = cmp.Or(o.Lease, o.Name+".governor.dev")
	o.WebhookService = cmp.Or(o.WebhookService, o.Name+"-webhook")
	o.WebhookConfiguration = cmp.Or(o.WebhookConfiguration, o.Name)
	return o, nil
}

// Main is the program: it runs the command line, with further commands, until it ends or the process receives a signal to stop,
// and exits with 1 on failure.
func Main(o Options, further ...*cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	cmd := Command(o)
	cmd.AddCommand(further...)
	err := cmd.ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1)
	}
}

// Command returns the command line, for programs that add commands of their own. It panics if the options cannot be
// those of an operator, for that is a mistake in the program.
func Command(o Options) *cobra.Command {
	o, err := o.complete()
	if err != nil {
		panic(err)
	}
	cmd := &cobra.Command{Use: o.Name, Short: o.Short, SilenceUsage: true}
	cmd.AddCommand(runCommand(o), versionCommand(o.Version))
	return cmd
}

func versionCommand(version string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			_, _ = fmt.Fprintln(cmd.OutOrStdout(), version)
		},
	}
}
