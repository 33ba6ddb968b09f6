package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/governor-dev/governor/localkube/cluster"
	"github.com/governor-dev/governor/localkube/host"
	"github.com/governor-dev/governor/localkube/node"
)

// nodeAction does something to a node.
type nodeAction func(ctx context.Context, c *cluster.Cluster, n node.Node) error

func nodeCommand(cluster *string) *cobra.Command {
	cmd := &cobra.Command{Use: "node", Short: "Do to a node what can happen to a machine"}
	cmd.AddCommand(
		onNodes(cluster, "stop", "Power off: everything on the node dies at once", powerOff),
		onNodes(cluster, "start", "Power on", powerOn),
		onNodes(cluster, "pause", "Freeze: everything on the node stands still", pause),
		onNodes(cluster, "resume", "Let a frozen node go on", resume),
		partitionCommand(cluster),
		onNodes(cluster, "heal", "End the node's partition", heal),
	)
	return cmd
}

func powerOff(_ context.Context, _ *cluster.Cluster, n node.Node) error  { return n.Stop() }
func powerOn(ctx context.Context, _ *cluster.Cluster, n node.Node) error { return n.Start(ctx) }
func pause(_ context.Context, _ *cluster.Cluster, n node.Node) error     { return n.Pause() }
func resume(_ context.Context, _ *cluster.Cluster, n node.Node) error    { return n.Resume() }
func heal(_ context.Context, c *cluster.Cluster, n node.Node) error      { return c.Heal(n) }

func onNodes(name *string, verb, short string, do nodeAction) *cobra.Command {
	return &cobra.Command{
		Use:   verb + " NODE…",
		Short: short,
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, nodes []string) error {
			return forEachNode(cmd.Context(), *name, nodes, do)
		},
	}
}

// forEachNode finds all nodes before it touches the first.
func forEachNode(ctx context.Context, name string, nodes []string, do nodeAction) error {
	if err := host.CheckRoot(); err != nil {
		return err
	}
	c, err := cluster.Open(name)
	if err != nil {
		return err
	}
	var found []node.Node
	for _, nodeName := range nodes {
		n, err := c.Node(nodeName)
		if err != nil {
			return err
		}
		found = append(found, n)
	}
	for _, n := range found {
		if err := do(ctx, c, n); err != nil {
			return err
		}
	}
	return nil
}

func partitionCommand(name *string) *cobra.Command {
	var from []string
	cmd := onNodes(name, "partition", "Cut the node off from everything, or from what --from names",
		func(_ context.Context, c *cluster.Cluster, n node.Node) error { return c.Partition(n, from) })
	cmd.Flags().StringSliceVar(&from, "from", nil, `other nodes, or "apiserver" for the control plane's machine (default: everything)`)
	return cmd
}

func apiServerCommand(name *string) *cobra.Command {
	cmd := &cobra.Command{Use: "apiserver", Short: "Stop and start the API server"}
	cmd.AddCommand(
		onCluster(name, "stop", "End the API server at once", func(_ context.Context, c *cluster.Cluster) error { return c.StopAPIServer() }),
		onCluster(name, "start", "Start the API server, and wait until it is ready", func(ctx context.Context, c *cluster.Cluster) error { return c.StartAPIServer(ctx) }),
	)
	return cmd
}

func onCluster(name *string, verb, short string, do func(context.Context, *cluster.Cluster) error) *cobra.Command {
	return &cobra.Command{
		Use:   verb,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := host.CheckRoot(); err != nil {
				return err
			}
			c, err := cluster.Open(*name)
			if err != nil {
				return err
			}
			return do(cmd.Context(), c)
		},
	}
}
