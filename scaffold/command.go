package scaffold

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"
)

// Command returns `governor new`, of the engine's version.
func Command(version string) *cobra.Command {
	p, k, e, dir := Project{}, Kind{}, Engine{Version: version}, ""
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Write a new operator project",
		Example: `  # an operator for Memcached objects of cache.example.com, in the directory ./pond
  governor new pond --module example.com/pond --group cache.example.com --kind Memcached
  cd pond && make test`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Name, p.Kinds = args[0], []Kind{k}
			if dir == "" {
				dir = p.Name
			}
			if p.Module == "" {
				p.Module = "example.com/" + p.Name
			}
			written, err := New(dir, p, e)
			if err != nil {
				return err
			}
			tell(cmd.OutOrStdout(), dir, written)
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "next:\n  cd %s && make test\n  make install && kubectl apply -f config/samples\n", dir)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.Module, "module", "", "path of the Go module; example.com/NAME if empty")
	f.StringVar(&p.Group, "group", "", "API group: a domain name of your own")
	f.StringVar(&p.Version, "version", "v1alpha1", "API version")
	f.StringVar(&k.Name, "kind", "", "the first kind")
	f.StringVar(&k.Plural, "plural", "", "plural of the kind; what English makes of it if empty")
	f.StringVar(&dir, "dir", "", "directory; NAME if empty")
	f.StringVar(&e.Directory, "engine", "", "a working tree of Governor to build with, instead of the published module")
	cmd.AddCommand(kindCommand())
	return cmd
}

func kindCommand() *cobra.Command {
	k, dir := Kind{}, "."
	cmd := &cobra.Command{
		Use:     "kind KIND",
		Short:   "Add a kind to the project in the current directory",
		Example: "  governor new kind Frog",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k.Name = args[0]
			written, err := Add(dir, k)
			if err != nil {
				return err
			}
			tell(cmd.OutOrStdout(), dir, written)
			return nil
		},
	}
	cmd.Flags().StringVar(&k.Plural, "plural", "", "plural of the kind; what English makes of it if empty")
	cmd.Flags().StringVar(&dir, "dir", dir, "directory of the project")
	return cmd
}

func tell(out io.Writer, dir string, written []string) {
	for _, path := range written {
		_, _ = fmt.Fprintln(out, "wrote", filepath.Join(dir, path))
	}
}
