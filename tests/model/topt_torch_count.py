"""Operations of the products that PyTorch itself does in a step of training: an independent count, by what is dispatched."""
import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Products(TorchDispatchMode):
    """Two operations for each multiplication of a product of matrices or of a convolution, forward and backward."""

    def __init__(self):
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = func._schema.name.split("::")[1]
        first = 1 if name in ("addmm", "baddbmm") else 0
        if name in ("mm", "bmm", "addmm", "baddbmm"):
            self.operations += 2 * args[first].numel() * args[first + 1].shape[-1]
        elif name == "convolution":
            self.operations += self.convolution(args[0], args[1], out, args[6])
        elif name.startswith("_scaled_dot_product") and "attention" in name:
            q, k, v = args[1:4] if "backward" in name else args[:3]
            times = 4 if "backward" in name else 2  # without the scores, where they are made again
            self.operations += times * q.numel() // q.shape[-1] * k.shape[-2] * (q.shape[-1] + v.shape[-1])
        elif name == "convolution_backward":
            self.operations += sum(args[-1][:2]) * self.convolution(args[1], args[2], args[0], args[7])
        return out

    @staticmethod
    def convolution(x, weight, y, transposed):
        """Each weight once for each pixel that it is put on, of the input where it is transposed."""
        return 2 * weight.numel() * (x if transposed else y).shape[0] * math.prod((x if transposed else y).shape[2:])


def tensors(out):
    """Those of an output that have a gradient, however they are packed."""
    if isinstance(out, torch.Tensor):
        return [out] if out.requires_grad else []
    if not isinstance(out, (dict, list, tuple)):
        return []
    return [t for o in (out.values() if isinstance(out, dict) else out) for t in tensors(o)]


def count(model, batch):
    """Of one step with this batch; recurrences as the products that they are."""
    with torch.backends.mkldnn.flags(enabled=False), Products() as products:
        out = model(*batch) if isinstance(batch, tuple) else model(**batch) if isinstance(batch, dict) else model(batch)
        sum(t.float().mean() for t in tensors(out)).backward()
    return products.operations
