package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answerWithin is how long a member may take to answer the benchmark.
const answerWithin = 500 * time.Millisecond

// healthy asks etcd itself: each member for a linearizable read, and whoever serves
// clients for the list.
func (s *stage) healthy(ctx context.Context, x *subject, pods []corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	answers := each(pods, func(p *corev1.Pod) error { return reads(ctx, p) })
	for range pods {
		if err := <-answers; err != nil {
			return err
		}
	}
	var lacks error
	answers = each(pods, func(p *corev1.Pod) error { return s.listed(ctx, x, p) })
	for range pods {
		err := <-answers
		if err == nil {
			return nil // nobody waits for those who do not serve yet
		}
		lacks = errors.Join(lacks, err)
	}
	return lacks
}

// each asks all pods at once, and gives the answers as they come.
func each(pods []corev1.Pod, ask func(*corev1.Pod) error) <-chan error {
	answers := make(chan error, len(pods))
	for i := range pods {
		go func() { answers <- ask(&pods[i]) }()
	}
	return answers
}

// reads asks for /health, which etcd answers without encryption on its port for
// metrics.
func reads(ctx context.Context, pod *corev1.Pod) error {
	if pod.Status.PodIP == "" {
		return fmt.Errorf("the pod %s has no address", pod.Name)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(pod.Status.PodIP, "2381")+"/health", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the pod %s is not healthy", pod.Name)
	}
	return nil
}

// listed wants as many started voters as there should be.
func (s *stage) listed(ctx context.Context, x *subject, pod *corev1.Pod) error {
	line, err := s.dial(ctx, x, pod)
	if err != nil {
		return err
	}
	defer func() { _ = line.Close() }()
	list, err := pb.NewClusterClient(line).MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
	if err != nil {
		return err
	}
	voters := 0
	for _, m := range list.Members {
		if !m.IsLearner && len(m.ClientURLs) > 0 {
			voters++
		}
	}
	if voters != x.size || len(list.Members) != x.size {
		return fmt.Errorf("etcd lists %d members and %d started voters, of %d", len(list.Members), voters, x.size)
	}
	return nil
}

// leads reports whether the pod's member is the leader.
func (s *stage) leads(ctx context.Context, x *subject, pod *corev1.Pod) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	line, err := s.dial(ctx, x, pod)
	if err != nil {
		return false, err
	}
	defer func() { _ = line.Close() }()
	status, err := pb.NewMaintenanceClient(line).Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return false, err
	}
	return status.Leader == status.Header.GetMemberId(), nil
}

func (s *stage) dial(ctx context.Context, x *subject, pod *corev1.Pod) (*grpc.ClientConn, error) {
	secure := insecure.NewCredentials()
	if x.encrypted {
		config, err := s.clientConfig(ctx, x)
		if err != nil {
			return nil, err
		}
		secure = credentials.NewTLS(config)
	}
	return grpc.NewClient("passthrough:///"+net.JoinHostPort(pod.Status.PodIP, "2379"), grpc.WithTransportCredentials(secure))
}

// clientConfig is what every client mounts.
func (s *stage) clientConfig(ctx context.Context, x *subject) (*tls.Config, error) {
	secret := &corev1.Secret{}
	if err := s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: x.name + "-client-tls"}, secret); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		return nil, errors.New("the Secret for clients has no authority")
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: roots, ServerName: x.service.Name}, nil
}
