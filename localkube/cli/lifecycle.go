package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/governor-dev/governor/localkube/build"
	"github.com/governor-dev/governor/localkube/cluster"
	"github.com/governor-dev/governor/localkube/host"
	"github.com/governor-dev/governor/localkube/image"
)

func upCommand(name *string) *cobra.Command {
	o := cluster.Options{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Build what is missing, and bring the cluster up; what runs already is left running",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Name = *name
			return up(cmd, o)
		},
	}
	cmd.Flags().IntVar(&o.Nodes, "nodes", cluster.DefaultNodes, "number of workers; more can be added later")
	cmd.Flags().StringVar(&o.Kubeconfig, "kubeconfig", "", "file to write the kubeconfig to (default: in the cluster's own folder)")
	cmd.Flags().BoolVar(&o.FastNodeDetection, "fast-node-detection", false, "notice a lost node in 20 s, evict its pods 20 s later")
	cmd.Flags().IntVar(&o.APIPort, "api-port", 6443, "port of the API server on the cluster's own address")
	return cmd
}

func up(cmd *cobra.Command, o cluster.Options) (err error) {
	if err := o.Validate(); err != nil {
		return err
	}
	if err := host.Check(); err != nil {
		return err
	}
	if o.Kubeconfig != "" {
		if o.Kubeconfig, err = filepath.Abs(o.Kubeconfig); err != nil {
			return err
		}
	}
	if err := host.InstallPackages(cmd.Context(), cmd.ErrOrStderr()); err != nil {
		return err
	}
	parts, err := makeParts(cmd.Context())
	if err != nil {
		return err
	}
	c, err := cluster.Up(cmd.Context(), o, parts, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "export KUBECONFIG=%s\n", c.KubeconfigFile())
	return nil
}

// makeParts builds the programs and the images that every cluster needs.
func makeParts(ctx context.Context) (cluster.Parts, error) {
	parts := cluster.Parts{Version: build.KubernetesVersion()}
	cache, err := build.DefaultCache()
	if err != nil {
		return parts, err
	}
	binaries, err := cache.Components(ctx)
	if err != nil {
		return parts, err
	}
	for _, program := range []string{"kubelet", "containerd", "etcd"} {
		parts.Binaries = append(parts.Binaries, filepath.Dir(binaries.Path(program)))
	}
	for _, name := range cluster.SystemImages() {
		archive, err := buildImage(ctx, cache, name)
		if err != nil {
			return parts, err
		}
		parts.Images = append(parts.Images, archive)
	}
	return parts, nil
}

func buildImage(ctx context.Context, cache build.Cache, nameOrFile string) (string, error) {
	recipe, err := image.Load(nameOrFile)
	if err != nil {
		return "", err
	}
	return image.Builder{Cache: cache}.Build(ctx, recipe)
}

func downCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End the cluster and remove all that belongs to it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := host.CheckRoot(); err != nil {
				return err
			}
			return cluster.Down(*name, cmd.ErrOrStderr())
		},
	}
}

func statusCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show nodes, programs, memory and logs; exit with 1 when something has ended that should run",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cluster.Open(*name)
			if err != nil {
				return err
			}
			s := c.Status()
			c.Print(cmd.OutOrStdout(), s)
			if !s.Healthy() {
				return fmt.Errorf("cluster %s is not whole", c.Name)
			}
			return nil
		},
	}
}

func envtestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "envtest-assets",
		Short: "Build kube-apiserver, etcd and kubectl, and print their folder, for KUBEBUILDER_ASSETS",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cache, err := build.DefaultCache()
			if err != nil {
				return err
			}
			dir, err := cache.EnvtestAssets(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), dir)
			return nil
		},
	}
}

func buildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Build what `up` needs, and print the folders of the programs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if os.Geteuid() == 0 {
				if err := host.InstallPackages(cmd.Context(), cmd.ErrOrStderr()); err != nil {
					return err
				}
			}
			parts, err := makeParts(cmd.Context())
			if err != nil {
				return err
			}
			for _, dir := range parts.Binaries {
				fmt.Fprintln(cmd.OutOrStdout(), dir)
			}
			return nil
		},
	}
}
