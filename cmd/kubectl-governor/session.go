package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// category is that of all kinds which Governor runs.
const category = "governor"

// session is one call of the plugin.
type session struct {
	genericclioptions.IOStreams

	flags *genericclioptions.ConfigFlags
	now   func() time.Time
}

// target is the object that a command is about.
type target struct {
	*unstructured.Unstructured

	mapping *meta.RESTMapping
	client  dynamic.ResourceInterface
	all     dynamic.Interface
}

// String is the object as users write it.
func (t *target) String() string { return strings.ToLower(t.GetKind()) + "/" + t.GetName() }

// find reads the object of TYPE/NAME or TYPE NAME.
func (s *session) find(args []string) (*target, error) {
	infos, err := s.builder().ResourceTypeOrNameArgs(false, args...).Latest().Do().Infos()
	if err != nil {
		return nil, err
	}
	if len(infos) != 1 {
		return nil, fmt.Errorf("name one object, as in etcdcluster/NAME")
	}
	return s.target(infos[0])
}

func (s *session) builder() *resource.Builder {
	namespace, _, err := s.flags.ToRawKubeConfigLoader().Namespace()
	return resource.NewBuilder(s.flags).AddError(err).Unstructured().
		NamespaceParam(namespace).DefaultNamespace().Flatten()
}

func (s *session) target(info *resource.Info) (*target, error) {
	all, err := s.dynamic()
	if err != nil {
		return nil, err
	}
	obj, ok := info.Object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%s is not one object", info.ObjectName())
	}
	client := all.Resource(info.Mapping.Resource).Namespace(info.Namespace)
	return &target{Unstructured: obj, mapping: info.Mapping, client: client, all: all}, nil
}

func (s *session) dynamic() (dynamic.Interface, error) {
	config, err := s.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(config)
}

// governed returns the kinds that Governor runs in this cluster.
func (s *session) governed() ([]schema.GroupVersionResource, error) {
	discovery, err := s.flags.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	lists, err := discovery.ServerPreferredResources()
	if err != nil && len(lists) == 0 {
		return nil, err
	}
	var all []schema.GroupVersionResource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Categories, category) {
				all = append(all, gv.WithResource(r.Name))
			}
		}
	}
	return all, nil
}

// complete offers TYPE/NAME of all governed objects.
func (s *session) complete(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	kinds, err := s.governed()
	client, failure := s.dynamic()
	namespace, _, missing := s.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil || failure != nil || missing != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var all []string
	for _, kind := range kinds {
		list, err := client.Resource(kind).Namespace(namespace).List(cmd.Context(), metav1.ListOptions{Limit: 500})
		if err != nil {
			continue
		}
		for _, item := range list.Items {
			if name := kind.Resource + "/" + item.GetName(); strings.HasPrefix(name, prefix) {
				all = append(all, name)
			}
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// related lists what belongs to the object, or nothing if that cannot be read.
func (t *target) related(ctx context.Context, kind schema.GroupVersionResource, selector string) ([]unstructured.Unstructured, error) {
	list, err := t.all.Resource(kind).Namespace(t.GetNamespace()).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// output is the flag -o.
type output struct{ format string }

func (o *output) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", "text", "text, json or yaml")
}

// write writes the value in the format, or lets text write it.
func (o *output) write(s *session, value any, text func()) error {
	var raw []byte
	var err error
	switch o.format {
	case "text":
		text()
		return nil
	case "json":
		raw, err = json.MarshalIndent(value, "", "  ")
	case "yaml":
		raw, err = yaml.Marshal(value)
	default:
		return fmt.Errorf("-o %s is not known: use text, json or yaml", o.format)
	}
	if err == nil {
		_, err = fmt.Fprintln(s.Out, strings.TrimRight(string(raw), "\n"))
	}
	return err
}

func (s *session) say(format string, args ...any) { _, _ = fmt.Fprintf(s.Out, format+"\n", args...) }
