"""Which layout every tensor of a model as given has, inferred from the operators that fix one."""
