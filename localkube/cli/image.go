package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/governor-dev/governor/localkube/build"
	"github.com/governor-dev/governor/localkube/cluster"
	"github.com/governor-dev/governor/localkube/host"
	"github.com/governor-dev/governor/localkube/image"
)

func imageCommand(name *string) *cobra.Command {
	cmd := &cobra.Command{Use: "image", Short: "Build images without Docker, and load them onto the nodes"}
	cmd.AddCommand(imageLoadCommand(name), imageBuildCommand(name), imageListCommand())
	return cmd
}

func imageLoadCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "load FILE…",
		Short: "Load OCI or Docker archives onto all nodes, also those that are off or added later",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			return loadImages(cmd, *name, files)
		},
	}
}

func loadImages(cmd *cobra.Command, name string, files []string) error {
	if err := host.CheckRoot(); err != nil {
		return err
	}
	c, err := cluster.Open(name)
	if err != nil {
		return err
	}
	var names []string
	for _, f := range files {
		in, err := image.References(f)
		if err != nil {
			return err
		}
		names = append(names, in...)
	}
	if err := c.AddImages(cmd.Context(), files); err != nil {
		return err
	}
	for _, n := range names {
		fmt.Fprintln(cmd.OutOrStdout(), "loaded", n)
	}
	return nil
}

func imageBuildCommand(name *string) *cobra.Command {
	var load bool
	cmd := &cobra.Command{
		Use:   "build RECIPE…",
		Short: "Build images from recipes: names that `image list` shows, `all` of them, or YAML files; print the archives",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, recipes []string) error {
			archives, err := buildImages(cmd.Context(), cmd, recipes)
			if err != nil || !load {
				return err
			}
			return loadImages(cmd, *name, archives)
		},
	}
	cmd.Flags().BoolVar(&load, "load", false, "load them onto the cluster's nodes too")
	return cmd
}

func buildImages(ctx context.Context, cmd *cobra.Command, recipes []string) ([]string, error) {
	cache, err := build.DefaultCache()
	if err != nil {
		return nil, err
	}
	var archives []string
	for _, r := range expand(recipes) {
		archive, err := buildImage(ctx, cache, r)
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(cmd.OutOrStdout(), archive)
		archives = append(archives, archive)
	}
	return archives, nil
}

// expand lets "all" stand for every recipe that localkube brings.
func expand(recipes []string) []string {
	if !slices.Contains(recipes, "all") {
		return recipes
	}
	var all []string
	for _, r := range image.Builtin() {
		all = append(all, r.Short)
	}
	return all
}

func imageListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the recipes that localkube brings",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, r := range image.Builtin() {
				fmt.Fprintf(cmd.OutOrStdout(), "%-20s %s\n", r.Short, r.Name)
			}
			return nil
		},
	}
}
