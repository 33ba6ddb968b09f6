// Package cli is the command line of localkube.
package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/governor-dev/governor/localkube/cluster"
	"github.com/governor-dev/governor/localkube/node"
	"github.com/governor-dev/governor/localkube/process"
)

// Main runs the command that the arguments name and returns the exit code.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, args); err != nil {
		fmt.Fprintln(os.Stderr, "localkube:", err)
		return 1
	}
	return 0
}

// run tells the commands that localkube gives itself from those that people give. The former are steps on the way into
// a node, where help is not needed and every millisecond counts.
func run(ctx context.Context, args []string) error {
	if len(args) >= 2 {
		switch args[0] {
		case process.EnterCommand:
			return process.Enter(args[1:])
		case node.InitCommand:
			return node.Init(args[1])
		case node.BootCommand:
			return node.Boot(ctx, args[1])
		case node.NetworkPolicyCommand:
			return node.EnforceNetworkPolicies(ctx, args[1])
		case node.ImportCommand:
			return node.Import(ctx, args[1])
		case cluster.ProvisionCommand:
			return cluster.Provision(ctx, args[1])
		case cluster.SuperviseCommand:
			return cluster.Supervise(ctx, args[1])
		}
	}
	root := Root()
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// Root is the command tree.
func Root() *cobra.Command {
	root := &cobra.Command{
		Use:   "localkube",
		Short: "A real Kubernetes of several nodes on one Linux machine, from Go modules",
		Long: `localkube builds Kubernetes from Go modules and runs it on this machine: a control plane, and workers that are
sets of namespaces with a containerd, kubelet and kube-proxy of their own. Nodes can be powered off, frozen and
cut off, as machines can. It needs root, Go, and Debian's packages; no container engine, no registry.`,
		Example: `  localkube up --kubeconfig build/kubeconfig
  localkube status
  localkube node stop n2
  localkube image build memcached-1.6.18 --load
  localkube down`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	name := root.PersistentFlags().String("name", cluster.DefaultName, "the cluster's name; several live side by side")
	root.AddCommand(
		upCommand(name), downCommand(name), statusCommand(name), nodeCommand(name), apiServerCommand(name),
		imageCommand(name), envtestCommand(), buildCommand(),
	)
	return root
}
