package main

import (
	_ "github.com/google/go-containerregistry/pkg/v1"
	_ "github.com/spf13/cobra"
	_ "github.com/vishvananda/netlink"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "k8s.io/client-go/dynamic"
	_ "k8s.io/client-go/kubernetes"
	_ "sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
	_ "sigs.k8s.io/yaml"
)
