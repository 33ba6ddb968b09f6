package main

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
)

// session is one call of the plugin.
type session struct {
	genericclioptions.IOStreams

	flags *genericclioptions.ConfigFlags
	now   func() time.Time
	// screen is the terminal of the output; nil if it is no terminal.
	screen *screen
	// asks reports whether a user at a terminal can confirm.
	asks bool
}

// target is the object of a command.
type target struct {
	*unstructured.Unstructured

	mapping *meta.RESTMapping
	// qualified adds the namespace to the text.
	qualified bool
	client    dynamic.ResourceInterface
	all       dynamic.Interface
}

// String returns the object as kind/name.
func (t *target) String() string {
	text := strings.ToLower(t.GetKind()) + "/" + t.GetName()
	if t.qualified {
		text += " in " + t.GetNamespace()
	}
	return text
}

// find reads the object of TYPE/NAME or TYPE NAME.
func (s *session) find(args []string) (*target, error) {
	infos, err := s.builder().ResourceTypeOrNameArgs(false, args...).Latest().Do().Infos()
	if err != nil {
		return nil, s.withKinds(err)
	}
	if len(infos) != 1 {
		return nil, fmt.Errorf("the arguments name %d objects: name one, as in etcdcluster/NAME", len(infos))
	}
	return s.target(infos[0])
}

// subject finds an object that Governor runs.
func (s *session) subject(args []string) (*target, error) {
	t, err := s.find(args)
	if err != nil {
		return nil, err
	}
	return t, s.mustRun(t)
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
