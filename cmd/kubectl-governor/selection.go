package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// selection is the objects of a command that acts on several, named or selected as for kubectl.
type selection struct {
	labels     string
	everywhere bool
}

func (c *selection) add(cmd *cobra.Command) {
	cmd.Use += " [TYPE/NAME...] | TYPE -l SELECTOR"
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.Flags().StringVarP(&c.labels, "selector", "l", "", "all objects of the type with these labels, such as team=shop")
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "with --selector, objects of all namespaces")
}

// each calls do with every object. All must be objects that Governor runs before do is called with the first, and
// an error of one does not affect the others.
func (c *selection) each(s *session, args []string, do func(*target) error) error {
	if c.everywhere && c.labels == "" {
		return errors.New("--all-namespaces needs --selector: name the objects, or select them by their labels")
	}
	found, err := s.builder().LabelSelectorParam(c.labels).AllNamespaces(c.everywhere).ResourceTypeOrNameArgs(false, args...).Latest().Do().Infos()
	if err != nil {
		return s.withKinds(err)
	}
	var all []*target
	for _, info := range found {
		t, err := s.target(info)
		if err == nil {
			err = s.mustRun(t)
		}
		if err != nil {
			return err
		}
		t.qualified = c.everywhere
		all = append(all, t)
	}
	if len(all) == 0 {
		s.say("No object has the labels %s: nothing is done.", c.labels)
	}
	var faults []error
	for _, t := range all {
		faults = append(faults, do(t))
	}
	return errors.Join(faults...)
}
