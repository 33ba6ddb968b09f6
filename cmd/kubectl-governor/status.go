package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/governor-dev/governor/lifecycle"
)

// status are the flags of the command.
type status struct {
	*session
	output

	everywhere bool
}

// state is one object in the list.
type state struct {
	Namespace string `json:"namespace"`
	// Object is kind/name.
	Object string `json:"object"`
	// Ready is True, False, Unknown or Paused.
	Ready   string        `json:"ready"`
	Reason  string        `json:"reason,omitempty"`
	Message string        `json:"message,omitempty"`
	Age     time.Duration `json:"-"`
}

func statusCommand(s *session) *cobra.Command {
	st := &status{session: s}
	cmd := &cobra.Command{
		Use:   "status [TYPE/NAME]",
		Short: "Show how everything is, or one object with its members",
		Example: `  # everything that Governor runs in this namespace, and in all
  kubectl governor status
  kubectl governor status -A

  # one cluster, its members, pods and volumes
  kubectl governor status etcd/my-cluster`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: s.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return st.list(cmd.Context())
			}
			return st.one(cmd.Context(), args)
		},
	}
	cmd.Flags().BoolVarP(&st.everywhere, "all-namespaces", "A", false, "in all namespaces")
	st.add(cmd)
	return cmd
}

// list shows all objects of all governed kinds.
func (s *status) list(ctx context.Context) error {
	kinds, err := s.governed()
	if err != nil {
		return err
	}
	if len(kinds) == 0 {
		return fmt.Errorf("no kind of this cluster is run by Governor: is it installed? (kubectl api-resources --categories=%s)", category)
	}
	namespace, _, err := s.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	if s.everywhere {
		namespace = metav1.NamespaceAll
	}
	all, err := s.states(ctx, kinds, namespace)
	return errors.Join(s.write(s.session, all, func() { s.table(all, namespace) }), err)
}

// states asks for all kinds at once. A kind that may not be listed hides no other.
func (s *status) states(ctx context.Context, kinds []schema.GroupVersionResource, namespace string) ([]state, error) {
	client, err := s.dynamic()
	if err != nil {
		return nil, err
	}
	found, faults := make([][]state, len(kinds)), make([]error, len(kinds))
	var wait sync.WaitGroup
	for i, kind := range kinds {
		wait.Go(func() {
			list, err := client.Resource(kind).Namespace(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				faults[i] = err
				return
			}
			for j := range list.Items {
				found[i] = append(found[i], s.state(&list.Items[j]))
			}
		})
	}
	wait.Wait()
	all := []state{}
	for _, some := range found {
		all = append(all, some...)
	}
	return all, errors.Join(faults...)
}

func (s *status) state(obj *unstructured.Unstructured) state {
	st := state{
		Namespace: obj.GetNamespace(), Object: strings.ToLower(obj.GetKind()) + "/" + obj.GetName(),
		Ready: string(metav1.ConditionUnknown), Reason: "NotSeen", Message: "Governor has not looked at it yet.",
		Age: s.now().Sub(obj.GetCreationTimestamp().Time),
	}
	all := conditions(obj)
	if c := apimeta.FindStatusCondition(all, lifecycle.Ready); c != nil {
		st.Ready, st.Reason, st.Message = string(c.Status), c.Reason, c.Message
	}
	if isPaused(all) {
		st.Ready = lifecycle.Paused
	}
	return st
}

func (s *status) table(all []state, namespace string) {
	if len(all) == 0 {
		s.say("There is nothing that Governor runs here.")
		return
	}
	w := tabwriter.NewWriter(s.Out, 0, 0, 3, ' ', 0)
	row := func(place string, cells ...string) {
		if namespace == metav1.NamespaceAll {
			cells = append([]string{place}, cells...)
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	row("NAMESPACE", "OBJECT", "READY", "REASON", "AGE", "MESSAGE")
	for _, st := range all {
		row(st.Namespace, st.Object, st.Ready, st.Reason, duration.HumanDuration(st.Age), st.Message)
	}
	_ = w.Flush()
}
