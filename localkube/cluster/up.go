package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/governor-dev/governor/localkube/network"
	"github.com/governor-dev/governor/localkube/node"
	"github.com/governor-dev/governor/localkube/pki"
	"github.com/governor-dev/governor/localkube/storage"
)

// Parts are what a cluster is put together from.
type Parts struct {
	// Version is the version of Kubernetes.
	Version string
	// Binaries are the folders of the programs.
	Binaries []string
	// Images are the archives that every node gets before its kubelet starts.
	Images []string
}

// Up makes the cluster, or completes it: what runs is left running, what does not is started. It returns when every node
// is ready and the cluster's DNS answers.
func Up(ctx context.Context, o Options, parts Parts, out io.Writer) (*Cluster, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	unlock, err := lock(out)
	if err != nil {
		return nil, err
	}
	defer unlock()
	c, err := ensure(o, parts)
	if err != nil {
		return nil, err
	}
	if err := c.checkPorts(); err != nil {
		return nil, err
	}
	if err := c.placeImages(parts.Images); err != nil {
		return nil, err
	}
	say := newTeller(out)
	for _, step := range []func(context.Context, *teller) error{c.prepare, c.startAll, c.awaitReady} {
		if err := step(ctx, say); err != nil {
			return nil, fmt.Errorf("cluster %s: %w", c.Name, err)
		}
	}
	return c, c.publishKubeconfig()
}

// ensure opens the cluster, or makes its folder and chooses its addresses.
func ensure(o Options, parts Parts) (*Cluster, error) {
	c, err := Open(o.Name)
	if errors.Is(err, ErrNotFound) {
		return create(o, parts)
	}
	if err != nil {
		return nil, err
	}
	if err := c.agree(o, parts); err != nil {
		return nil, err
	}
	c.Nodes, c.Kubeconfig, c.Binaries = o.Nodes, o.Kubeconfig, parts.Binaries
	return c, c.save()
}

// agree refuses what cannot be changed on a cluster that exists.
func (c *Cluster) agree(o Options, parts Parts) error {
	again := fmt.Sprintf("run `localkube down --name %s` first to create it again", c.Name)
	switch {
	case o.Nodes < c.Nodes:
		return fmt.Errorf("nodes: cluster %s has %d, and %d would take some away; %s", c.Name, c.Nodes, o.Nodes, again)
	case o.FastNodeDetection != c.FastNodeDetection:
		return fmt.Errorf("fast node detection: cluster %s was made with %v; %s", c.Name, c.FastNodeDetection, again)
	case o.APIPort != c.APIPort:
		return fmt.Errorf("API port: cluster %s was made with %d; %s", c.Name, c.APIPort, again)
	case parts.Version != c.Version:
		return fmt.Errorf("cluster %s runs Kubernetes %s, this localkube brings %s; %s", c.Name, c.Version, parts.Version, again)
	}
	return nil
}

func create(o Options, parts Parts) (*Cluster, error) {
	var taken []network.Plan
	forwarding := network.Forwarding()
	for _, name := range Names() {
		if other, err := Open(name); err == nil {
			taken, forwarding = append(taken, other.Plan), other.Forwarding
		}
	}
	plan, err := network.FreePlan(taken)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Options: o, Plan: plan, Version: parts.Version, Binaries: parts.Binaries, Forwarding: forwarding}
	if err := os.MkdirAll(c.path(), 0o755); err != nil {
		return nil, err
	}
	return c, c.save()
}

// prepare makes all that must be there before anything starts.
func (c *Cluster) prepare(ctx context.Context, say *teller) error {
	if err := createMountPoints(node.MountPoints()); err != nil {
		return err
	}
	ca, err := c.certify()
	if err != nil {
		return err
	}
	for _, n := range c.Workers() {
		if err := certifyNode(ca, c, n); err != nil {
			return err
		}
		if err := n.WriteConfig(); err != nil {
			return err
		}
	}
	if err := storage.Prepare(ctx, c.path("volumes")); err != nil {
		return err
	}
	if err := c.Plan.EnsureBridge(); err != nil {
		return err
	}
	if err := c.Plan.Masquerade(); err != nil {
		return err
	}
	say.done("certificates, volumes, network")
	return nil
}

// certifyNode gives the kubelet the identity that the Node authorizer expects, and kube-proxy its own.
func certifyNode(ca *pki.Authority, c *Cluster, n node.Node) error {
	id := pki.Identity{
		User:   "system:node:" + n.Name,
		Groups: []string{"system:nodes"},
		Hosts:  []string{n.Name, n.Address().String()},
	}
	own, err := ca.For(filepath.Join(n.Dir, "pki"))
	if err != nil {
		return err
	}
	if _, _, err := own.Issue("kubelet", id); err != nil {
		return err
	}
	if err := own.Kubeconfig(filepath.Join(n.Dir, "kubelet.kubeconfig"), "localkube-"+c.Name, n.APIServer, id); err != nil {
		return err
	}
	for _, client := range []string{"kube-proxy", "networkpolicy"} {
		if err := own.Kubeconfig(filepath.Join(n.Dir, client+".kubeconfig"), "localkube-"+c.Name, n.APIServer, identities[client]); err != nil {
			return err
		}
	}
	return nil
}

// AddImages puts archives where every node finds them, now and when it boots, and makes the running nodes import them.
func (c *Cluster) AddImages(ctx context.Context, archives []string) error {
	if err := c.placeImages(archives); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range c.Workers() {
		if n.Init() != 0 && !n.Group.Frozen() {
			g.Go(func() error { return n.ImportImages(ctx) })
		}
	}
	return g.Wait()
}

func (c *Cluster) placeImages(archives []string) error {
	for _, archive := range archives {
		if err := linkFile(archive, c.path("images", filepath.Base(archive))); err != nil {
			return err
		}
	}
	return nil
}

// startAll starts the control plane and the nodes side by side: a node unpacks its images while the API server starts.
func (c *Cluster) startAll(ctx context.Context, say *teller) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range c.Workers() {
		g.Go(func() error { return n.Start(ctx) })
	}
	g.Go(func() error { return c.startControlPlane(ctx, say) })
	return g.Wait()
}

func (c *Cluster) startControlPlane(ctx context.Context, say *teller) error {
	if err := errors.Join(c.etcd().Start(), c.apiServer().Start()); err != nil {
		return err
	}
	if err := c.awaitAPIServer(ctx); err != nil {
		return err
	}
	say.done("API server ready")
	for _, p := range []func() error{c.controllerManager().Start, c.scheduler().Start, c.provisioner().Start, c.supervisor().Start} {
		if err := p(); err != nil {
			return err
		}
	}
	return c.applyAddons(ctx)
}

// publishKubeconfig copies the administrator's kubeconfig to where the user wants it, owned by the user who called sudo.
func (c *Cluster) publishKubeconfig() error {
	if c.Kubeconfig == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(c.Kubeconfig), 0o755); err != nil {
		return err
	}
	if err := copyFile(c.AdminKubeconfig(), c.Kubeconfig); err != nil {
		return err
	}
	return giveToCaller(c.Kubeconfig)
}

// teller says what has been reached, with the time since the start.
type teller struct {
	out   io.Writer
	start time.Time
}

func newTeller(out io.Writer) *teller { return &teller{out: out, start: time.Now()} }

func (t *teller) done(what string) {
	fmt.Fprintf(t.out, "%5.1fs  %s\n", time.Since(t.start).Seconds(), what)
}

// createMountPoints makes the folders that nodes mount over, and remembers those that were not there before.
func createMountPoints(dirs []string) error {
	known := readCreated()
	for _, dir := range dirs {
		missing := missingAncestors(dir)
		if len(missing) == 0 {
			continue
		}
		known = append(known, missing...)
		if err := writeCreated(known); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}
