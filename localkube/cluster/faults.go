package cluster

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/governor-dev/governor/localkube/node"
)

// APIServerTarget is the name that stands for the API server among the things to cut a node from.
const APIServerTarget = "apiserver"

// StopAPIServer ends the API server at once, and it stays stopped; applications and kubelets go on without it.
func (c *Cluster) StopAPIServer() error { return c.apiServer().Stop() }

// StartAPIServer starts the API server, unless it runs, and returns when it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	if err := c.apiServer().Start(); err != nil {
		return err
	}
	return c.awaitAPIServer(ctx)
}

// Partition cuts the node from everything, or, when others are named, from those alone: nodes, or "apiserver".
func (c *Cluster) Partition(n node.Node, from []string) error {
	if n.Init() == 0 {
		return fmt.Errorf("node %s is off: there is nothing to cut", n.Name)
	}
	if len(from) == 0 {
		return c.Plan.Unplug(n.Number)
	}
	var numbers []int
	for _, name := range from {
		number, err := c.number(name)
		if err != nil {
			return err
		}
		if number == n.Number {
			return fmt.Errorf("node %s cannot be cut from itself", name)
		}
		numbers = append(numbers, number)
	}
	return c.Plan.Cut(n.Init(), numbers)
}

func (c *Cluster) number(name string) (int, error) {
	if name == APIServerTarget {
		return 0, nil
	}
	n, err := c.Node(name)
	if err != nil {
		return 0, fmt.Errorf("%w, and %q", err, APIServerTarget)
	}
	return n.Number, nil
}

// Heal ends every partition of the node.
func (c *Cluster) Heal(n node.Node) error {
	if n.Init() == 0 {
		return fmt.Errorf("node %s is off: `localkube node start %s` powers it on, without its partition", n.Name, n.Name)
	}
	if err := c.Plan.Plug(n.Number); err != nil {
		return err
	}
	return c.Plan.Heal(n.Init())
}

// state is what happened to the node, in a word.
func (c *Cluster) state(n node.Node) string {
	pid := n.Init()
	switch {
	case pid == 0:
		return "off"
	case n.Group.Frozen():
		return "paused"
	case c.Plan.IsUnplugged(n.Number):
		return "unplugged"
	case c.Plan.IsCut(pid):
		return "partitioned"
	default:
		return "on"
	}
}

// restartHint says how what has ended by itself is started again.
func (c *Cluster) restartHint(k Component) string {
	if k.supervised && c.supervisor().Running() {
		return "the supervisor starts it again within half a minute"
	}
	if c.Name == DefaultName {
		return "`localkube up` starts it again"
	}
	return fmt.Sprintf("`localkube up --name %s` starts it again", c.Name)
}

// indent puts two blanks before every line.
func indent(out io.Writer, lines []string) {
	fmt.Fprintln(out, "    "+strings.Join(lines, "\n    "))
}
