"""How an op is called: conversion of arguments, the call, and the operators of tensors."""
