package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
)

// complete suggests types, TYPE/NAME, and after a type its names.
func (s *session) complete(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	const quiet = cobra.ShellCompDirectiveNoFileComp
	kinds, err := s.governed(false)
	client, failure := s.dynamic()
	namespace, _, missing := s.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil || failure != nil || missing != nil || len(args) > 1 {
		return nil, quiet
	}
	var offered []string
	for _, k := range kinds {
		switch {
		case len(args) == 0:
			offered = append(offered, k.Resource)
			for _, name := range s.names(cmd.Context(), client, k, namespace) {
				offered = append(offered, k.Resource+"/"+name)
			}
		case k.called(args[0]):
			offered = append(offered, s.names(cmd.Context(), client, k, namespace)...)
		}
	}
	return slices.DeleteFunc(offered, func(word string) bool { return !strings.HasPrefix(word, prefix) }), quiet
}

// called reports whether the word is a name of the kind.
func (k kind) called(word string) bool {
	name, group, qualified := strings.Cut(strings.ToLower(word), ".")
	known := name == k.Resource || slices.Contains(k.short, name)
	return known && (!qualified || group == k.Group || group == k.Version+"."+k.Group)
}

func (s *session) names(ctx context.Context, client dynamic.Interface, k kind, namespace string) (names []string) {
	list, err := client.Resource(k.GroupVersionResource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 500})
	if err != nil {
		return nil
	}
	for _, item := range list.Items {
		names = append(names, item.GetName())
	}
	return names
}

// completeFlags completes the flags --namespace and --context.
func (s *session) completeFlags(root *cobra.Command) {
	_ = root.RegisterFlagCompletionFunc("namespace", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		client, err := s.dynamic()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, err := client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).List(cmd.Context(), metav1.ListOptions{Limit: 500})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var all []string
		for _, item := range list.Items {
			all = append(all, item.GetName())
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	})
	_ = root.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		config, err := s.flags.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var all []string
		for name := range config.Contexts {
			all = append(all, name)
		}
		slices.Sort(all)
		return all, cobra.ShellCompDirectiveNoFileComp
	})
}
