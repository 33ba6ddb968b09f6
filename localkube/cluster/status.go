package cluster

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/governor-dev/governor/localkube/cgroup"
	"github.com/governor-dev/governor/localkube/process"
)

// lastWords is how many lines of its log are shown of a program that has ended.
const lastWords = 8

// Component is one line of the status.
type Component struct {
	// Node is the node's name, or "control-plane".
	Node string
	// Name is the program's.
	Name string
	// State is "running", "ended", or "stopped" on purpose; for a whole node "on", "off", "paused", "unplugged" or
	// "partitioned".
	State string
	// PID is the process as the machine sees it; 0 when there is none.
	PID int
	// Memory is what it holds, in bytes, without page cache.
	Memory int64
	// CPU is the processor time it has used so far.
	CPU time.Duration
	// Log is the file of its output.
	Log string
	// Restarts is how often it ended by itself and was started again, LastRestart when that happened last.
	Restarts    int
	LastRestart time.Time

	supervised bool
}

// Status is how a cluster is.
type Status struct {
	Name, Version, APIServer, Kubeconfig string
	Components                           []Component
	// Memory and CPU are those of the whole cluster with all its pods.
	Memory int64
	CPU    time.Duration
}

// ended tells whether the component should run and does not.
func (c Component) ended() bool { return c.State == "ended" }

// Healthy tells whether everything that should run does.
func (s Status) Healthy() bool {
	for _, c := range s.Components {
		if c.ended() {
			return false
		}
	}
	return true
}

// Status looks at the cluster's processes.
func (c *Cluster) Status() Status {
	s := Status{
		Name: c.Name, Version: c.Version, APIServer: c.APIServer(), Kubeconfig: c.Kubeconfig,
		Memory: c.group().Memory(), CPU: c.group().CPU(),
	}
	for _, p := range c.ControlPlane() {
		s.Components = append(s.Components, describe("control-plane", p))
	}
	for _, n := range c.Workers() {
		state := c.state(n)
		s.Components = append(s.Components, Component{
			Node: n.Name, Name: "(node)", State: state, PID: n.Init(), Memory: n.Group.Memory(), CPU: n.Group.CPU(), Log: n.Log("init"),
		})
		if state == "off" {
			continue
		}
		for _, p := range n.Programs() {
			s.Components = append(s.Components, describe(n.Name, p))
		}
		s.Components = append(s.Components, pods(n.Name, n.Pods()))
	}
	return s
}

func describe(where string, p process.Program) Component {
	c := Component{Node: where, Name: p.Group.Name(), State: "ended", Log: p.Log, Memory: p.Group.Memory(), CPU: p.Group.CPU()}
	history := p.History()
	c.Restarts, c.LastRestart, c.supervised = history.Restarts, history.LastRestart, p.Record != ""
	if history.Stopped {
		c.State = "stopped"
	}
	if pids := p.Group.Pids(); len(pids) > 0 {
		c.State, c.PID = "running", pids[0]
	}
	return c
}

func pods(where string, g cgroup.Group) Component {
	return Component{Node: where, Name: "(pods)", State: "-", Memory: g.Memory(), CPU: g.CPU(), Log: "kubectl logs"}
}

// Print writes the status as a table, and the last words of what has ended.
func (c *Cluster) Print(out io.Writer, s Status) {
	fmt.Fprintf(out, "cluster %s: Kubernetes %s at %s, kubeconfig %s\n\n", s.Name, s.Version, s.APIServer, s.Kubeconfig)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NODE\tCOMPONENT\tSTATE\tPID\tRESTARTS\tMEMORY\tCPU TIME\tLOG")
	for _, k := range s.Components {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d MiB\t%s\t%s\n", k.Node, k.Name, k.State, pidOf(k), k.Restarts, k.Memory>>20, k.CPU.Round(10*time.Millisecond), k.Log)
	}
	fmt.Fprintf(w, "\t(all)\t\t\t\t%d MiB\t%s\t\n", s.Memory>>20, s.CPU.Round(10*time.Millisecond))
	_ = w.Flush()
	for _, k := range s.Components {
		if k.ended() {
			fmt.Fprintf(out, "\n%s of %s has ended; %s. The end of its log:\n", k.Name, k.Node, c.restartHint(k))
			indent(out, process.LastLines(k.Log, lastWords))
		}
		if k.Restarts > 0 {
			fmt.Fprintf(out, "\n%s of %s ended by itself; restarts: %d, the last at %s; see %s\n",
				k.Name, k.Node, k.Restarts, k.LastRestart.Format(time.TimeOnly), k.Log)
		}
	}
}

func pidOf(c Component) string {
	if c.PID == 0 {
		return "-"
	}
	return fmt.Sprint(c.PID)
}
