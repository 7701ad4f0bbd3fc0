"""granary: stock, orders and invoices for a wholesaler of grain and flour."""

__version__ = "2.8.1"
