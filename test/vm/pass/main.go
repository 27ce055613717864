// Command pass carries out one pass of the agent over one StorageTarget, in the virtual machine of the tests, where there is no
// API server.
package main

func main() {}
