// Package cluster puts a Kubernetes together from the parts: the control plane as programs of the machine, workers as
// nodes, and the addons that make it complete.
//
// A cluster is a folder (/var/lib/localkube/NAME), a control group (/localkube/NAME) and an address plan with its links.
// Everything that belongs to it is found through one of the three, so that any later localkube can end it.
package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/governor-dev/governor/localkube/cgroup"
	"github.com/governor-dev/governor/localkube/network"
	"github.com/governor-dev/governor/localkube/node"
)

const (
	// DefaultName is the name of the cluster that commands mean when they name none.
	DefaultName = "governor"
	// DefaultNodes is how many workers a cluster has when nothing else is said.
	DefaultNodes = 3

	home      = "/var/lib/localkube"
	groupRoot = cgroup.Group("/localkube")
)

// Options say what a cluster is like. All but the kubeconfig are fixed when it is made; nodes can be added later.
type Options struct {
	// Name tells clusters of one machine apart: a DNS label of at most 20 characters.
	Name string
	// Nodes is the number of workers, 1 to 50.
	Nodes int
	// FastNodeDetection makes the control plane notice a lost node within 20 seconds instead of Kubernetes' own 50, and
	// evict its pods 20 seconds later instead of 5 minutes.
	FastNodeDetection bool
	// Kubeconfig is the file that gets the administrator's kubeconfig.
	Kubeconfig string
	// APIPort is the port of the API server on the cluster's own address.
	APIPort int
}

// Cluster is a cluster of this machine, kept in cluster.json.
type Cluster struct {
	Options
	// Plan is its address plan.
	Plan network.Plan
	// Version is the version of Kubernetes that it runs.
	Version string
	// Binaries are the folders of its programs.
	Binaries []string
	// Forwarding is what the machine's IP forwarding was before the first cluster.
	Forwarding string
}

var validName = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$`)

// Validate tells what is wrong with the options: the field, its value, what is allowed.
func (o Options) Validate() error {
	if err := CheckName(o.Name); err != nil {
		return err
	}
	if o.Nodes < 1 || o.Nodes > network.MaxNodes {
		return fmt.Errorf("nodes: %d is not between 1 and %d", o.Nodes, network.MaxNodes)
	}
	if o.APIPort < 1 || o.APIPort > 65535 {
		return fmt.Errorf("API port: %d is not between 1 and 65535", o.APIPort)
	}
	return nil
}

// CheckName tells what is wrong with the name of a cluster.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("cluster name %q: must be at most 20 lower case letters, digits and dashes, and start with a letter", name)
	}
	return nil
}

// ErrNotFound says that there is no cluster of that name.
var ErrNotFound = errors.New("no such cluster")

// Open reads the cluster of that name.
//
// Errors: [ErrNotFound], with the names of the clusters that there are.
func Open(name string) (*Cluster, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(home, name, "cluster.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %q (there are: %s); `localkube up --name %s` makes it", ErrNotFound, name, strings.Join(Names(), ", "), name)
	}
	if err != nil {
		return nil, err
	}
	c := &Cluster{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("cluster %s: %w; `localkube down --name %s` clears what is left of it", name, err, name)
	}
	return c, nil
}

// Names are the names of the clusters of this machine, also of half-made ones, sorted.
func Names() []string {
	entries, _ := os.ReadDir(home)
	names := []string{}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// save writes cluster.json in one step: a cluster that can be read is whole.
func (c *Cluster) save() error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	file := c.path("cluster.json")
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func (c *Cluster) path(elem ...string) string {
	return filepath.Join(append([]string{home, c.Name}, elem...)...)
}

func (c *Cluster) group() cgroup.Group { return groupRoot.Child(c.Name) }

// APIServer is the URL of the API server.
func (c *Cluster) APIServer() string {
	return fmt.Sprintf("https://%s:%d", c.Plan.Gateway(), c.APIPort)
}

// AdminKubeconfig is the cluster's own copy of the administrator's kubeconfig.
func (c *Cluster) AdminKubeconfig() string { return c.path("admin.kubeconfig") }

// KubeconfigFile is the kubeconfig for people: where they wanted it, or the cluster's own.
func (c *Cluster) KubeconfigFile() string {
	if c.Kubeconfig != "" {
		return c.Kubeconfig
	}
	return c.AdminKubeconfig()
}

// Binary is the path of one of the cluster's programs.
func (c *Cluster) Binary(name string) string {
	for _, dir := range c.Binaries {
		if file := filepath.Join(dir, name); fileExists(file) {
			return file
		}
	}
	return name
}

func fileExists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// Workers are the cluster's nodes, in order.
func (c *Cluster) Workers() []node.Node {
	var workers []node.Node
	for n := 1; n <= c.Nodes; n++ {
		workers = append(workers, c.worker(n))
	}
	return workers
}

func (c *Cluster) worker(n int) node.Node {
	name := fmt.Sprintf("n%d", n)
	return node.Node{
		Name:          name,
		Number:        n,
		Zone:          string(rune('a' + (n-1)%3)),
		Plan:          c.Plan,
		Group:         c.group().Child(name),
		Dir:           c.path("nodes", name),
		Volumes:       c.path("volumes"),
		Images:        c.path("images"),
		Binaries:      c.Binaries,
		APIServer:     c.APIServer(),
		PauseImage:    pauseImage,
		FastDetection: c.FastNodeDetection,
	}
}

// Node is the worker of that name.
//
// Errors: there is none; the message names those that there are.
func (c *Cluster) Node(name string) (node.Node, error) {
	workers := c.Workers()
	i := slices.IndexFunc(workers, func(n node.Node) bool { return n.Name == name })
	if i < 0 {
		return node.Node{}, fmt.Errorf("cluster %s has no node %q: its nodes are n1 to n%d", c.Name, name, c.Nodes)
	}
	return workers[i], nil
}
