package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/governor-dev/governor/localkube/cgroup"
	"github.com/governor-dev/governor/localkube/network"
	"github.com/governor-dev/governor/localkube/storage"
)

// killDeadline is how long the kernel may take to end a cluster's processes.
const killDeadline = 30 * time.Second

// Down ends the cluster and removes all that belongs to it, whatever state it is in; a cluster that does not exist is no
// error. It needs no free disk space.
func Down(name string, out io.Writer) error {
	if err := CheckName(name); err != nil {
		return err
	}
	unlock, err := lock(out)
	if err != nil {
		return err
	}
	defer unlock()
	c, err := Open(name)
	if err != nil {
		// Without a readable cluster.json no node was ever started, and no link made: see ensure.
		c = &Cluster{Options: Options{Name: name}, Plan: -1, Forwarding: network.Forwarding()}
	}
	if err := errors.Join(c.kill(), c.disconnect(), storage.Cleanup(c.path("volumes"))); err != nil {
		return fmt.Errorf("cluster %s: %w; nothing more is removed, so that `localkube down` can be repeated", name, err)
	}
	if err := errors.Join(c.group().Remove(), c.removeFiles()); err != nil {
		return err
	}
	return c.leaveMachine()
}

// kill ends every process of the cluster: the supervisor first, which would start programs again; then all others at
// once, beginning with the first process of each node, because the kernel ends a node in one stroke.
func (c *Cluster) kill() error {
	if err := c.supervisor().Stop(); err != nil {
		return err
	}
	var g errgroup.Group
	for _, group := range c.group().Children() {
		g.Go(func() error {
			killFirst(group.Child("init"))
			return group.Kill(killDeadline)
		})
	}
	return g.Wait()
}

func (c *Cluster) disconnect() error {
	if c.Plan < 0 {
		return nil
	}
	return errors.Join(c.Plan.Remove(), c.Plan.RemoveMasquerade())
}

// removeFiles deletes the cluster's folder, and the published kubeconfig if it is still this cluster's.
func (c *Cluster) removeFiles() error {
	own, _ := os.ReadFile(c.AdminKubeconfig())
	if published, err := os.ReadFile(c.Kubeconfig); err == nil && string(published) == string(own) {
		if err := os.Remove(c.Kubeconfig); err != nil {
			return err
		}
	}
	return os.RemoveAll(c.path())
}

// leaveMachine puts back, with the last cluster, what the first one changed on the machine.
func (c *Cluster) leaveMachine() error {
	if len(Names()) > 0 {
		return nil
	}
	if err := removeCreated(); err != nil {
		return err
	}
	if c.Plan >= 0 {
		if err := network.SetForwarding(c.Forwarding); err != nil {
			return err
		}
	}
	return errors.Join(groupRoot.Remove(), removeHome())
}

// removeHome removes localkube's own folder, or empties it if a disk is mounted on it.
func removeHome() error {
	err := os.RemoveAll(home)
	if errors.Is(err, syscall.EBUSY) {
		return nil
	}
	return err
}

func killFirst(g cgroup.Group) {
	for _, pid := range g.Pids() {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
}
